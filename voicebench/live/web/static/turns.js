// The table of turns, newest first. What was said is set as text, never as markup.
import { strip, whole } from "./drawing.js";

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(key, String(value));
  }
  for (const child of children) if (child !== null && child !== undefined) made.append(child);
  return made;
}

// Controls and marks that turn the direction of what follows: nobody says them, and they would move other words.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
export const spoken = (text) => (text ? text.replace(UNSEEN, "") : "");

const cell = (label, kind, ...children) => element("td", { "data-label": label, class: kind }, ...children);

function tokens(turn, name) {
  const slot = turn.slots.find((one) => one.slot === name);
  if (!slot) return ["–"];
  const figure = element("data", { value: slot.tokens }, whole(slot.tokens));
  return name === "residual" ? [figure, element("small", {}, `in ${whole(slot.slot_ms)} ms`)] : [figure];
}

function said(turn, keptOut) {
  const heard = turn.transcript ? `“${spoken(turn.transcript)}”` : "(nothing was recognised)";
  const parts = [element("p", { class: "heard" }, element("span", { class: "unseen" }, "You: "), heard)];
  if (turn.reply) parts.push(element("p", { class: "reply" }, element("span", { class: "unseen" }, "Agent: "), spoken(turn.reply)));
  const told = [spoken(turn.reason), turn.barge_in_ms === null ? null : `silent ${whole(turn.barge_in_ms)} ms after you began`, keptOut].filter(Boolean);
  if (told.length) parts.push(element("small", { class: turn.outcome === "failed" ? "late-text" : "" }, told.join(" · ")));
  return parts;
}

// An emulated mode is marked where its name does not say so.
export const isMarked = (mode, kind) => kind === "emulated" && !mode.startsWith("emulated/");

export function modeName(turn) {
  return [spoken(turn.mode), isMarked(turn.mode, turn.kind) ? element("span", { class: "mute" }, " (emulated)") : null].filter(Boolean);
}

export function row(turn, budget, show) {
  const button = element("button", { type: "button", class: "open", "aria-label": `Show turn ${turn.turn + 1}` }, `${turn.turn + 1}`);
  button.addEventListener("click", () => show(turn));
  const done = turn.outcome === "completed";
  const v2v = turn.voice_to_voice_ms;
  const late = done && v2v !== null && v2v > budget;
  const figure = done && v2v !== null
    ? element("data", { value: v2v, class: late ? "v2v late-text" : "v2v" }, whole(v2v))
    : element("b", { class: turn.outcome === "interrupted" || turn.outcome === "no_speech" ? "mute" : "late-text" }, turn.outcome.replace("_", " "));
  const apart = done && !turn.counted ? `not counted: ${[...turn.flags].join(", ").replaceAll("_", " ") || "no latency"}` : null;
  const standing = turn.standing;
  const share = standing.n ? `${standing.hit} of ${standing.n}` : "–";
  return element(
    "tr",
    { "data-turn": turn.turn, class: turn.kind === "emulated" ? "emu" : "" },
    element("th", { scope: "row" }, element("div", { class: "which" }, button, element("span", { class: "modename" }, ...modeName(turn), turn.sample === "repeated" ? element("small", {}, "repeated") : null))),
    cell("said", "said-cell", ...said(turn, apart)),
    cell("where the time went", "line", turn.stages_ms ? strip(turn, budget) : element("small", {}, "no stages")),
    cell("V2V, ms", "strong", figure, late ? element("small", { class: "late-text" }, `over ${budget}`) : null,
      done && turn.uncertainty_ms !== null ? element("small", {}, `± ${whole(turn.uncertainty_ms)}`) : null),
    cell("tokens by 400 ms", "", ...tokens(turn, "400")),
    cell("by 500 ms", "", ...tokens(turn, "500")),
    cell("residual slot", "tinted", ...tokens(turn, "residual")),
    cell("p50 so far", "", element("data", { value: standing.p50_ms ?? "" }, whole(standing.p50_ms)), element("small", {}, `n ${standing.counted}`)),
    cell(`within ${budget}`, "", share),
  );
}
