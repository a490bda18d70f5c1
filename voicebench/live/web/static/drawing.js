// Drawings in SVG: the stages of a turn against the budget, and both channels under them on the same axis.
export const STAGES = ["endpointing", "asr", "turn", "dispatch", "llm_ttfat", "clause", "tts", "playout"];
export const ENDS = ["vad_stop", "transcript_final", "turn_end", "llm_request", "llm_first_text", "tts_request", "tts_first_byte", "first_audible"];
const FAMILY = ["listen", "listen", "listen", "listen", "model", "model", "speak", "speak"];
const SVG = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  for (const child of children) made.append(child);
  return made;
}

const emulated = (turn) => (turn.kind === "emulated" ? "emu" : "");

// One line of stages with the budget's mark.
export function strip(turn, budget) {
  const scale = 1000 / Math.max(budget * 1.1, turn.voice_to_voice_ms ?? 0);
  const drawn = svg("svg", { class: `strip ${emulated(turn)}`, viewBox: "0 0 1000 12", preserveAspectRatio: "none", "aria-hidden": "true" });
  let at = 0;
  STAGES.forEach((stage, place) => {
    const wide = turn.stages_ms?.[stage] ?? 0;
    if (wide > 0) drawn.append(svg("rect", { class: `seg w${place} s${place}`, x: at * scale, y: 0, width: wide * scale, height: 12 }));
    at += wide;
  });
  drawn.append(svg("path", { class: "budget", "vector-effect": "non-scaling-stroke", d: `M${budget * scale} 0V12` }));
  return drawn;
}

function ticks(from, to, wide) {
  const step = [100, 200, 250, 500, 1000, 2000].find((one) => ((to - from) / one) * 46 < wide) ?? 2000;
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}

// The opened turn: a stair of stages, the line at the budget, the channels.
export function fall(turn, budget, wide) {
  const left = 46;
  const picture = turn.picture;
  const from = picture?.start_ms ?? (turn.running ? -600 : 0);
  const end = picture ? picture.start_ms + picture.step_ms * picture.person.length : 0;
  const to = picture ? Math.max(end, (turn.voice_to_voice_ms ?? 0) + 200) : Math.max(800, budget, turn.voice_to_voice_ms ?? 0) + 400;
  const x = (ms) => left + ((ms - from) / (to - from)) * (wide - left - 6);
  const stair = turn.stages_ms ? STAGES.length * 19 + 6 : 0;
  const top = 24;
  const lanes = top + stair;
  const high = lanes + (picture || turn.running ? 104 : 0) + 22;
  const told = turn.stages_ms
    ? `Voice-to-voice ${whole(turn.voice_to_voice_ms)} ms: ${STAGES.map((one) => `${one} ${whole(turn.stages_ms[one])}`).join(", ")}`
    : "Both channels of the turn";
  const drawn = svg("svg", { class: `chart ${emulated(turn)}`, width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": told });
  drawn.append(svg("rect", { class: "late", x: x(budget), y: top - 4, width: Math.max(0, x(to) - x(budget)), height: high - top - 18 }));
  for (const at of ticks(from, to, wide - left)) {
    drawn.append(svg("path", { class: "grid", d: `M${x(at)} ${high - 22}v5` }));
    const label = svg("text", { class: "tick", x: x(at), y: high - 5, "text-anchor": "middle" });
    label.textContent = `${at}`;
    drawn.append(label);
  }
  drawn.append(svg("path", { class: "base", d: `M${x(0)} ${top - 4}V${high - 22}` }));
  const close = x(budget) - x(0) < 110;
  if (!close) word(drawn, x(0), 12, "speech_end", "note", "middle");
  if (picture) channels(drawn, picture, x, lanes, wide);
  drawn.append(svg("path", { class: "budget", d: `M${x(budget)} ${top - 8}V${high - 22}` }));
  const v2v = turn.voice_to_voice_ms;
  const near = v2v !== null && Math.abs(x(v2v) - x(budget)) < 130;
  word(drawn, x(budget), 12, wide < 500 || near ? `${budget} ms` : `${budget} ms budget`, "strong halo", v2v !== null && v2v > budget && near ? "end" : "middle");
  if (turn.stages_ms) stairs(drawn, turn, budget, x, top, lanes, wide);
  return drawn;
}

export const whole = (value) => (value === null || value === undefined ? "–" : `${Math.round(value)}`);

function word(into, x, y, text, kind, anchor) {
  const made = svg("text", { class: kind, x, y, "text-anchor": anchor });
  made.textContent = text;
  into.append(made);
  return made;
}

// A label stands right of its bar, or left of it where it would run into the budget's line or the edge.
function stairs(drawn, turn, budget, x, top, lanes, wide) {
  let at = 0;
  STAGES.forEach((stage, place) => {
    const value = turn.stages_ms[stage];
    if (turn.running && value === null) return;
    const width = value ?? 0;
    const y = top + place * 19;
    drawn.append(svg("rect", { class: `seg s${place}`, x: x(at), y, width: Math.max(0, x(at + width) - x(at)), height: 14 }));
    const text = `${stage} ${whole(value)}`;
    const long = text.length * 6.6 + 12;
    const begin = x(at + width);
    const crosses = begin < x(budget) && begin + long > x(budget);
    const right = begin + long < wide && !(crosses && x(at) > long);
    word(drawn, right ? begin + 5 : x(at) - 5, y + 11, text, `stagename halo ${FAMILY[place]}`, right ? "start" : "end");
    at += width;
  });
  if (turn.voice_to_voice_ms !== null) drawn.append(svg("path", { class: "whisker", d: `M${x(at)} ${lanes - 8}V${lanes + 100}` }));
}

function channels(drawn, picture, x, top, wide) {
  [["person", "you", "listen"], ["agent", "agent", "speak"]].forEach(([name, told, kind], lane) => {
    const middle = top + 27 + lane * 52;
    word(drawn, 0, middle + 4, told, `stagename ${kind}`, "start");
    drawn.append(svg("path", { class: "grid", d: `M46 ${middle}H${wide - 6}` }));
    const loudest = Math.max(20, ...picture[name]);
    const up = [];
    const down = [];
    picture[name].forEach((value, place) => {
      const at = x(picture.start_ms + place * picture.step_ms).toFixed(1);
      const high = (value / loudest) * 22;
      up.push(`${at} ${(middle - high).toFixed(1)}`);
      down.unshift(`${at} ${(middle + high).toFixed(1)}`);
    });
    drawn.append(svg("path", { class: `wave ${lane ? "s6" : "s0"}`, d: `M${up.join("L")}L${down.join("L")}Z` }));
  });
}

// What both channels have been in the last seconds. Without motion: how loud they are now.
export class Strip {
  constructor(canvas) {
    this.canvas = canvas;
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.past = { person: [], agent: [] };
    this.kept = 100;
  }

  draw(ears) {
    const { canvas } = this;
    const ratio = devicePixelRatio || 1;
    const wide = canvas.clientWidth;
    const high = canvas.clientHeight;
    if (canvas.width !== Math.round(wide * ratio)) canvas.width = Math.round(wide * ratio);
    if (canvas.height !== Math.round(high * ratio)) canvas.height = Math.round(high * ratio);
    const pen = canvas.getContext("2d");
    const look = getComputedStyle(canvas);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, wide, high);
    ["person", "agent"].forEach((name, lane) => {
      const samples = new Float32Array(4096);
      ears?.[name].getFloatTimeDomainData(samples);
      const past = this.past[name];
      past.push(samples.reduce((most, value) => Math.max(most, Math.abs(value)), 0));
      if (past.length > this.kept) past.shift();
      pen.fillStyle = look.getPropertyValue(lane ? "--s6" : "--s0");
      const middle = (lane + 0.5) * (high / 2);
      const most = high / 4 - 2;
      if (this.still.matches) {
        const loud = past.slice(-5).reduce((one, two) => Math.max(one, two), 0);
        pen.fillRect(0, middle - 4, Math.max(1, Math.sqrt(loud) * wide), 8);
        return;
      }
      const step = wide / this.kept;
      past.forEach((value, place) => {
        const tall = Math.max(0.5, Math.min(1, value * 1.4) * most);
        pen.fillRect(wide - (past.length - place) * step, middle - tall, Math.max(1, step - 1), tall * 2);
      });
    });
  }
}
