// The page: what the server tells is shown, what is pressed is told. It decides nothing about a turn.
import { ENDS, STAGES, Strip, fall, whole } from "./drawing.js";
import { Sound } from "./sound.js";
import { element, isMarked, modeName, row, spoken } from "./turns.js";

const DRAW_MS = 80;
const LAMPS = { listening: "listen", "you speak": "listen", "the agent thinks": "model", "the agent speaks": "speak" };
const TOLD = { listening: "Listening: speak", "you speak": "You speak", "the agent thinks": "The agent thinks", "the agent speaks": "The agent speaks" };

const at = (name) => document.getElementById(name);
const page = { budget: 800, turns: [], shown: null, modes: [], mode: null, muted: false, started: false, ready: false, ended: false };
const strip = new Strip(at("strip"));

const sound = new Sound({ told, gone, silent });
setInterval(() => {
  if (sound.ears && !document.hidden) strip.draw(sound.ears);
}, DRAW_MS);

function told(message) {
  if (message.type === "welcome") welcome(message);
  else if (message.type === "run") page.run = message.run;
  else if (message.type === "state") state(message);
  else if (message.type === "progress") underWay(message);
  else if (message.type === "turn") turn(message.turn, true);
  else if (message.type === "muted") muted(message.on);
  else if (message.type === "listening") problem(null);
  else if (message.type === "note") problem(message.text);
  else if (message.type === "refused") refused(message.text);
  else if (message.type === "ended") ended(message);
  head();
}

function welcome(message) {
  page.budget = message.budget_ms;
  page.modes = message.modes;
  page.anchor = message.anchor;
  page.run = message.run;
  at("mode").replaceChildren(
    ...page.modes.map((one) => element("option", { value: one.id }, isMarked(one.id, one.kind) ? `${one.id} (emulated)` : one.id)),
  );
  at("mode").disabled = page.modes.length < 2;
  at("anchor").textContent = message.anchor === "waveform" ? " (waveform: in the kept recording)" : " (vad_backdated)";
  document.querySelector("th.within").textContent = `within ${page.budget}`;
  document.querySelector(".budget-ms").textContent = `${page.budget} ms`;
  at("hatched").hidden = !page.modes.some((one) => one.kind === "emulated");
  page.turns = [];
  at("rows").replaceChildren();
  for (const one of message.turns) turn(one, false);
  muted(message.muted);
  problem(null);
  state(message.state);
}

function head() {
  const parts = [page.run && `run ${page.run}`, page.anchor && `speech_end ${page.anchor}`, `budget ${page.budget} ms`];
  at("run").textContent = parts.filter(Boolean).map((one) => `· ${one}`).join(" ");
}

function state(message) {
  page.ready = message.ready;
  if (message.mode) {
    page.mode = message.mode;
    at("mode").value = message.mode;
  }
  if (page.started && !message.ready) progress(message.phase);
}

// A turn under way: its stages as far as their marks are there.
function underWay({ told, marks_ms: marks }) {
  progress(told);
  if (page.ended || marks.turn_end === undefined) return;
  const stages = {};
  let before = 0;
  STAGES.forEach((stage, place) => {
    const end = marks[ENDS[place]];
    stages[stage] = end === undefined ? null : Math.max(0, end - before);
    before = Math.max(before, end ?? 0);
  });
  const kind = page.modes.find((one) => one.id === page.mode)?.kind;
  const turn = { running: true, turn: page.turns.length, mode: page.mode, kind, stages_ms: stages, voice_to_voice_ms: marks.first_audible ?? null, picture: null };
  page.shown = turn;
  at("how").hidden = true;
  at("shown").replaceChildren(`Turn ${turn.turn + 1}, under way`, element("span", { class: "mute by" }, ...modeName(turn)));
  at("shown-said").textContent = "";
  for (const line of at("rows").children) line.classList.remove("now");
  redraw();
}

function progress(told) {
  if (page.ended) return;
  at("state").textContent = page.muted && told === "listening" ? "Muted" : TOLD[told] ?? `${told} …`;
  at("lamp").className = `lamp ${page.muted && told === "listening" ? "bad" : LAMPS[told] ?? ""}`;
  page.told = told;
}

function muted(on) {
  page.muted = on;
  at("mute").setAttribute("aria-pressed", String(on));
  if (page.started && page.told) progress(page.told);
}

function turn(one, fresh) {
  page.turns.push(one);
  at("none").hidden = at("how").hidden = true;
  at("table").hidden = at("tablenote").hidden = false;
  at("repeat").disabled = false;
  at("rows").prepend(row(one, page.budget, show));
  show(one);
  standing(one);
  if (fresh) problem(null);
}

function standing(one) {
  const { p50_ms: p50, counted, hit, n } = one.standing;
  const line = at("standing");
  if (p50 === null) {
    line.textContent = n ? "No turn counts yet: beside each stands why." : "No latency yet.";
    return;
  }
  const turns = counted === 1 ? "one turn" : `the median of ${counted} turns`;
  line.replaceChildren(...modeName(one), ` answers after ${whole(p50)} ms, ${turns}: ${hit} of ${n} within ${page.budget} ms.`);
  at("lead").textContent = counted < 10 ? "Few turns: a median of so many says little. Go on speaking." : "";
}

function show(one) {
  page.shown = one;
  for (const line of at("rows").children) line.classList.toggle("now", line.dataset.turn === String(one.turn));
  const done = one.outcome === "completed" && one.voice_to_voice_ms !== null;
  at("shown").replaceChildren(`Turn ${one.turn + 1}: `, done ? `${whole(one.voice_to_voice_ms)} ms` : one.outcome.replace("_", " "), element("span", { class: "mute by" }, ...modeName(one)));
  at("shown-said").textContent = [one.transcript && `“${spoken(one.transcript)}”`, spoken(one.reply)].filter(Boolean).join("  →  ") || spoken(one.reason);
  const parts = one.uncertainty;
  at("doubt").replaceChildren(
    element("b", {}, `± ${whole(one.uncertainty_ms ?? 0)} ms`),
    ` is this turn's uncertainty: the browser's clock on ours ${parts.clock_ms.toFixed(1)}, microphone ${parts.microphone_ms.toFixed(1)}, player ${parts.player_ms.toFixed(1)}, the edge of a sound ${parts.window_ms.toFixed(0)}, and ${parts.unseen_ms.toFixed(0)} for buffers that a browser does not tell of (assumed, not measured).`,
  );
  if (one.uncertainty_ms === null) at("doubt").textContent = "";
  redraw();
}

function redraw() {
  const one = page.shown;
  const drawable = one && (one.picture || one.stages_ms);
  at("fall").replaceChildren(...(drawable ? [fall(one, page.budget, Math.max(280, at("fall").clientWidth))] : []));
}

function problem(text) {
  at("problem").hidden = !text;
  at("problem").textContent = spoken(text);
}

function refused(text) {
  problem(text);
  at("before").hidden = false;
  at("during").hidden = at("ears").hidden = true;
}

function silent() {
  page.started = false;
  at("start").disabled = at("before").hidden = false;
  at("during").hidden = at("ears").hidden = true;
  problem("The sound has stopped: a device is gone. A turn under way counts as failed. See that it is there, then press Start.");
}

function gone(event, final) {
  if (page.ended) return;
  const why = event.code === 4000 ? "The conversation goes on in another window." : final ? "The server has ended the conversation." : "The connection is lost. The turn under way counts as failed; trying again …";
  problem(why);
  at("state").textContent = final ? "Not connected" : "Connecting again …";
  at("lamp").className = "lamp bad";
  if (final) for (const name of ["mute", "repeat", "end", "mode", "start"]) at(name).disabled = true;
}

function ended(message) {
  page.ended = true;
  sound.stop();
  for (const name of ["before", "during", "ears"]) at(name).hidden = true;
  at("after").hidden = false;
  at("why").textContent = message.why;
  const links = message.files.map((file) =>
    element("a", { class: "file", download: file.name, href: URL.createObjectURL(new Blob([file.content], { type: file.kind })) }, file.name.endsWith(".html") ? "Report (HTML)" : "Report (JSON)"),
  );
  at("files").replaceChildren(...links, element("span", { class: "mute" }, links.length ? "Kept in this tab until you close it, and in the run's folder." : "Nothing was measured."));
  problem(null);
}

function wish(what, more = {}) {
  if (page.started && !page.ended) sound.say({ type: "wish", what, ...more });
}

at("start").addEventListener("click", async () => {
  at("start").disabled = true;
  problem(null);
  try {
    await sound.start(at("echo").checked);
  } catch (reason) {
    at("start").disabled = false;
    problem(reason.name === "NotAllowedError" ? "The browser was not allowed to hear the microphone. Allow it for this page, then press Start again." : `The microphone cannot be opened: ${reason.message}`);
    return;
  }
  page.started = true;
  at("before").hidden = true;
  at("during").hidden = at("ears").hidden = false;
  progress("Opening the microphone");
});
at("mute").addEventListener("click", () => wish("mute", { on: !page.muted }));
at("repeat").addEventListener("click", () => wish("repeat"));
at("end").addEventListener("click", () => {
  wish("end");
  at("end").disabled = true;
  if (page.ready) at("state").textContent = "Ending: the report is being written …";
});
at("mode").addEventListener("change", () => wish("mode", { mode: at("mode").value }));

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !page.started) return;
  if (event.target.closest("select, input, textarea")) return;
  const name = { m: "mute", r: "repeat", q: "end" }[event.key];
  if (name && !at(name).disabled) at(name).click();
  if (event.key === "n" && page.modes.length > 1) {
    const place = page.modes.findIndex((one) => one.id === page.mode);
    wish("mode", { mode: page.modes[(place + 1) % page.modes.length].id });
  }
});
let wide = 0;
new ResizeObserver(() => {
  if (at("fall").clientWidth !== wide) {
    wide = at("fall").clientWidth;
    redraw();
  }
}).observe(at("fall"));
