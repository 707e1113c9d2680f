"use strict";

/* Nothing here makes markup of text: elements are made one by one, and text only ever becomes a text node. */
const $ = (selector, root = document) => root.querySelector(selector);
const number = (n) => n.toLocaleString("en");
const plural = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;
const times = (n) => (n === 1 ? "once" : plural(n, "time"));
const pages = { size: 50, at: 0 };
const say = (text) => { $("#said").textContent = text; };
let common, findings = [], shown = [];

function make(name, about = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(about)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/* -- the bytes of a stream ------------------------------------------------------------------------------------ */

const PIECE = /[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[^]/g;
const STANDS = /^(?!\p{Default_Ignorable_Code_Point})[\p{L}\p{N}\p{P}\p{S} ]$/u;
const HIDDEN = new Set("\u2800");
const SPELLED = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const hex = (n) => n.toString(16).toUpperCase().padStart(2, "0");

/* What is written as one: a character, or a byte of a character that is broken or cut in two. */
function tokens(stream, cuts) {
  const made = [];
  for (const { 0: piece, index } of stream.bytes.matchAll(PIECE)) {
    const at = stream.start + index;
    const values = Uint8Array.from(piece, (c) => c.charCodeAt(0));
    let whole = null;
    try { whole = utf8.decode(values); } catch { /* not UTF-8: shown byte by byte */ }
    const cut = values.some((_, n) => n > 0 && cuts.has(at + n));
    if (whole !== null && !cut) made.push({ at, size: values.length, of: values.length, nth: 1, whole, ...spelled(whole) });
    else values.forEach((value, n) => made.push({ at: at + n, size: 1, of: values.length, nth: n + 1, whole, split: cut, text: `\\x${hex(value)}`, escaped: true }));
  }
  return made;
}

function spelled(character) {
  if (STANDS.test(character) && !HIDDEN.has(character)) return { text: character, escaped: false };
  const code = character.codePointAt(0);
  return { text: SPELLED[character] ?? (code < 128 ? `\\x${hex(code)}` : `\\u{${hex(code)}}`), escaped: true };
}

/* The place that a cut before each byte falls on. */
function placed(stream) {
  const names = new Map();
  let at = stream.start + 1;
  for (const [place, run] of stream.places) {
    for (let n = 0; n < run; n++) names.set(at++, common.places[place]);
  }
  return names;
}

const KINDS = { comment: "comment", field: "unknown field", blank: "blank line", json: "line of JSON", bom: "byte order mark" };

function part([kind, , nameEnd, value, end], at) {
  const what = KINDS[kind] ?? `${kind} field`;
  if (kind === "comment" || kind === "bom") return at < end ? what : `line end of the ${what}`;
  if (at >= end) return kind === "blank" ? "blank line, which ends the event" : `line end of the ${what}`;
  if (at < nameEnd) return `name of the ${what}`;
  return at < value ? `separator of the ${what}` : `value of the ${what}, byte ${number(at - value)}`;
}

class Ruler {
  constructor(stream, trace, end) {
    Object.assign(this, { stream, trace, end, caret: -1 });
    this.ends = []; // offset just past each chunk
    let total = 0;
    for (const [size, run] of stream.chunks) for (let n = 0; n < run; n++) this.ends.push(total += size);
    this.last = stream.count;
    this.step = this.last;
    this.places = placed(stream);
    this.begins = new Map(); // offset -> the chunks that begin there, counted from 1
    const stop = stream.start + stream.bytes.length;
    for (let n = this.chunkOf(stream.start) - 1; n < this.last - 1 && this.ends[n] < stop; n++) {
      const at = this.ends[n];
      this.begins.set(at, [...(this.begins.get(at) ?? []), n + 2]);
    }
    this.tokens = tokens(stream, this.begins);
    this.readout = make("p.readout", {}, "Point at a byte, or use the arrow keys in the stream: left and right by byte, up and down by chunk.");
    this.bytes = this.draw();
  }

  /* Which chunk, counted from 1, a byte is in. */
  chunkOf(at) {
    let [low, high] = [0, this.last];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle] > at) high = middle;
      else low = middle + 1;
    }
    return low + 1;
  }

  draw() {
    const { stream } = this;
    const crowd = stream.count > 40 && stream.count > this.tokens.length / 4 ? ".crowd" : "";
    const box = make(`div.bytes${crowd}`, {
      tabindex: 0, role: "application", "aria-roledescription": "byte ruler",
      "aria-label": `The stream: ${plural(stream.size, "byte")} in ${plural(stream.count, "chunk")}. Left and right arrow: by byte. Up and down: by chunk.`,
      onkeydown: (event) => this.key(event),
      onmouseover: (event) => { const n = event.target.dataset.n; if (n) this.point(Number(n)); },
    });
    box.append(make("div.line.title", {}, make("i", {}, "event"), make("i", {}, "byte")));
    let next = 0, frame = -1;
    const marks = new Set(stream.marks);
    const stop = stream.start + stream.bytes.length;
    for (const line of stream.lines) {
      const [kind, start, nameEnd, value, end, lineStop] = line;
      const says = kind !== "comment" && kind !== "blank" && kind !== "bom" && line[6] !== frame;
      if (says) frame = line[6];
      const row = make("div");
      while (next < this.tokens.length && this.tokens[next].at < lineStop) {
        const token = this.tokens[next];
        const { at, size } = token;
        const chunk = this.chunkOf(at);
        (this.begins.get(at) ?? []).slice(1).forEach(() => row.append(make("i.empty", {}, "empty chunk")));
        token.line = line;
        token.chunk = chunk;
        const classes = {
          even: chunk % 2 === 0, cut: this.begins.has(at), mark: marks.has(at) || (size > 1 && [...Array(size).keys()].some((n) => marks.has(at + n))),
          split: token.split, esc: token.escaped && at < end, end: at >= end, name: at < value && kind !== "comment", comment: kind === "comment",
        };
        token.node = make(["b", ...Object.keys(classes).filter((name) => classes[name])].join("."), { "data-n": next, "data-chunk": this.begins.has(at) ? chunk : null }, token.text);
        row.append(token.node);
        next++;
      }
      box.append(make(`div.line${says ? ".first" : ""}`, {}, make("i", {}, says ? number(frame + 1) : ""), make("i", {}, number(Math.max(start, stream.start))), row));
    }
    const left = stream.size - stop;
    const ends = { eof: "end of the stream", reset: "the connection breaks" };
    const last = left ? `and ${plural(left, "more byte")}` : marks.has(stop) ? `\u25c2 ${ends[this.end]}` : ends[this.end];
    box.append(make("div.line.over", {}, make("i"), make("i", {}, number(stop)), make("div", {}, make(marks.has(stop) ? "b.mark" : "b", {}, last))));
    return box;
  }

  key(event) {
    const moves = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in moves && this.tokens.length) {
      this.point(Math.max(0, Math.min(this.tokens.length - 1, this.caret + moves[event.key])));
      this.tokens[this.caret].node.scrollIntoView({ block: "nearest" });
      say(this.readout.textContent);
    } else if (event.key in steps) this.go(this.step + steps[event.key]);
    else return;
    event.preventDefault();
  }

  point(n) {
    this.tokens[this.caret]?.node.classList.remove("at");
    this.caret = n;
    const { at, size, of, nth, whole, line, chunk, node } = this.tokens[n];
    node.classList.add("at");
    const values = [...this.stream.bytes.substr(at - this.stream.start, size)].map((c) => hex(c.charCodeAt(0)));
    const code = whole === null ? "no UTF-8" : `U+${hex(whole.codePointAt(0)).padStart(4, "0")}${STANDS.test(whole) ? ` ${whole}` : ""}`;
    const character = whole !== null && size < of ? `byte ${nth} of ${of} of ${code}` : code;
    const place = this.places.get(at);
    const event = line[0] === "comment" || line[0] === "bom" ? "" : `event ${line[6] + 1}, `;
    this.readout.replaceChildren(
      make("b", {}, `${size > 1 ? "bytes" : "byte"} ${number(at)}${size > 1 ? ` to ${number(at + size - 1)}` : ""}`), `, hex ${values.join(" ")}, ${character} \u00b7 ${event}${part(line, at)} \u00b7 chunk ${number(chunk)}`,
      place ? ` \u00b7 ${this.begins.has(at) ? "cut here" : "a cut before it falls"} ${place}` : "");
  }

  /* Show how things stood when so many chunks had been read. */
  go(step) {
    this.step = Math.max(0, Math.min(this.last, step));
    const until = this.step === 0 ? 0 : this.ends[this.step - 1] ?? this.stream.size;
    for (const token of this.tokens) token.node.classList.toggle("later", token.at >= until);
    const place = this.places.get(until);
    const words = `${plural(until, "byte")}${place ? `, cut ${place}` : ""}`;
    this.readout.replaceChildren(make("b", {}, `After ${plural(this.step, "chunk")}`), `: ${words}`);
    this.moved?.(words);
  }
}

/* A stream of frames or events; it has the same face as a ruler. */
class Items {
  constructor(stream, trace, end) {
    Object.assign(this, { stream, trace, last: stream.size, step: stream.size, readout: null });
    const row = (text, n) => make("div.line", {}, make("i", {}, number(n + 1)), make("div", {}, make(stream.marks.includes(n) ? "b.mark" : "b", {}, text)));
    this.rows = stream.items.map(row);
    const left = stream.size - stream.items.length;
    const over = left ? `and ${number(left)} more` : { eof: "end of the stream", reset: "the connection breaks" }[end];
    this.bytes = make("div.bytes.items", { tabindex: 0, role: "group", "aria-label": "The stream" }, ...this.rows,
      make("div.line.over", {}, make("i"), make("div", {}, make(stream.marks.includes(stream.size) ? "b.mark" : "b", {}, over))));
  }

  go(step) {
    this.step = Math.max(0, Math.min(this.last, step));
    this.rows.forEach((row, n) => row.classList.toggle("later", n >= this.step));
    this.moved?.("");
  }
}

/* -- a stream with its steps and what the target gave out ----------------------------------------------------- */

function drawnStream(title, ruler, trace, judge) {
  const { last } = ruler;
  const heading = make("h4", {}, make("span", {}, title));
  const given = trace ? make("div.given", { tabindex: 0, role: "group", "aria-label": "What the target gave out" }) : null;
  const box = make("div.stream", {}, heading, given ? make("div.halves", {}, ruler.bytes, given) : ruler.bytes, ruler.readout);
  if (last > 1 || trace) {
    const slider = make("input", { type: "range", min: 0, max: last, value: last, "aria-label": "Chunks read", title: "Chunks read", oninput: () => ruler.go(Number(slider.value)) });
    const words = make("span");
    const step = (by, text, label) => make("button", { type: "button", "aria-label": label, onclick: () => ruler.go(ruler.step + by) }, text);
    const back = step(-1, "\u2039", "One chunk back"), on = step(1, "\u203a", "One chunk on");
    heading.append(make("div.stepper", { role: "group", "aria-label": "Step through the chunks" }, back, slider, on, words));
    ruler.moved = (about, quiet) => {
      const { step } = ruler;
      words.textContent = `chunk ${number(step)} of ${number(last)}`;
      slider.value = step;
      back.disabled = step === 0;
      on.disabled = step === last;
      const text = `After ${plural(step, "chunk")} of ${number(last)}${about ? ` (${about})` : ""}`;
      slider.setAttribute("aria-valuetext", text);
      const newest = given ? drawGiven(given, trace, step, last, judge) : "";
      if (!quiet) say(`${text}. ${newest}`);
    };
    ruler.moved("", true);
  }
  return box;
}

/* Draw what the target had given out; returns what was the newest of it, in words. */
function drawGiven(box, trace, step, last, judge) {
  const over = step === last;
  const until = over ? Infinity : step;
  const told = trace.moments.filter(([after]) => after <= until);
  const rows = told.map(([after, what, text]) => make(!over && after === step ? "li.now" : "li", {},
    make("span", {}, after > last ? "at the end" : after ? `chunk ${number(after)}` : "at once"),
    make("div", {}, what === "item" ? null : `${what} `, make("code", {}, text))));
  const ending = over ? make("div.last", {}, make("p", {}, `The target ${trace.end}${trace.taken < last ? `, after ${number(trace.taken)} of ${number(last)} chunks` : ""}`),
    trace.result === null ? null : make("code", {}, trace.result), judge ? make("p", {}, judge) : null) : null;
  box.replaceChildren(make("h5", {}, over ? "Given out in all" : `Given out after chunk ${number(step)}`),
    rows.length ? make("ol", {}, ...rows) : make("p", {}, "nothing"), ...(ending ? [ending] : []));
  const now = over ? [] : told.filter(([after]) => after === step);
  if (over) return `The target ${trace.end}.`;
  return now.length ? `The target gave out ${now.map(([, what, text]) => `${what} ${text}`).join(", ")}.` : "The target gave out nothing more.";
}

/* -- a finding ------------------------------------------------------------------------------------------------ */

const WORTH = { complete: "The stream is complete and must be read.", refuse: "The stream is damaged and must not end as complete.", either: "The stream is odd: it may be read or refused." };

function values(pairs) {
  const texts = pairs.map(([, text]) => text);
  let same = 0, tail = 0;
  if (texts.length === 2) {
    const most = Math.min(...texts.map((text) => text.length));
    while (same < most && texts[0][same] === texts[1][same]) same++;
    while (tail < most - same && texts[0].at(-1 - tail) === texts[1].at(-1 - tail)) tail++;
  }
  return make("dl.values", {}, ...pairs.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, ...(texts.length < 2 ? [text] : [
    make("span.same", {}, text.slice(0, same)), make("mark", {}, text.slice(same, text.length - tail)), make("span.same", {}, text.slice(text.length - tail)),
  ]))]));
}

function copied(text) {
  const code = make("code", {}, text);
  const button = make("button", { type: "button", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      say("Copied");
    } catch { // not allowed: let the reader press the keys
      getSelection().selectAllChildren(code);
      say("Selected; copy it with the keyboard");
    }
  } }, "Copy");
  return make("div.copy", {}, code, button);
}

function body(finding) {
  const { oracle, rule, known, runs } = finding;
  const [about, law] = [common.oracles[oracle], common.rules[rule]];
  const facts = [
    ["Because of", finding.causes.join(" and ")],
    ["Also shows as", finding.also.join(", ")],
    ["Invariant", about ? `${oracle}: ${about}` : oracle],
    ["Rule", law ? `${rule} (${law.level}): ${law.sentence}; ${law.source}` : null],
    ["Signature", copied(finding.signature)],
    ["Met", `${times(finding.count)}, first by ${finding.engine}${finding.how ? `: ${finding.how}` : ""}`],
    ["Run again", runs ? `failed in ${finding.failed} of ${plural(runs, "run")}` : null],
    ["Seen", finding.first ? `first ${finding.first}, last ${finding.last}` : null],
    [finding.tags.includes("expired") ? "Was excused" : "Excused", known ? `until ${known.until}: ${known.reason}` : null],
    ["Case file", finding.path],
    ["Replay", finding.replay ? copied(finding.replay) : null],
  ];
  return make("div.body", {}, values(finding.values), ...drawn(finding), make("dl.about", {},
    ...facts.filter(([, value]) => value).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])));
}

function drawn({ case: found, trace }) {
  if (!found) return [make("p.empty", {}, "The bytes are left out to keep this page small; `streamfuzz show` draws the case file.")];
  const judge = found.judge ? `${WORTH[found.judge[0]]}${found.judge[1] ? ` (${found.judge[1]})` : ""}` : "";
  const rulers = found.streams.map((stream, n) => {
    const ruler = stream.items ? new Items(stream, trace, found.end) : new Ruler(stream, trace, found.end);
    const size = stream.items ? `${number(stream.size)} ${found.takes}` : `${plural(stream.size, "byte")} in ${plural(stream.count, "chunk")}`;
    const part = stream.bytes?.length < stream.size ? `, of which ${number(stream.bytes.length)} from byte ${number(stream.start)} are shown` : "";
    const name = found.streams.length > 1 ? ["First stream", "Second stream"][n] : "The stream";
    return drawnStream(`${name}: ${size}${part}`, ruler, trace, judge);
  });
  return [...(found.probe ? [make("p", {}, found.probe)] : []), ...rulers, ...(judge && !trace ? [make("p.empty", {}, judge)] : [])];
}

function row(n) {
  const finding = findings[n];
  const seen = finding.first && finding.tags[0] !== "new" ? `, seen since ${finding.first}` : "";
  const rate = finding.runs && finding.failed < finding.runs ? `, failed in ${finding.failed} of ${plural(finding.runs, "run")}` : "";
  const head = make("button.head", { type: "button", "aria-expanded": "false", onclick: () => toggle(item) },
    make("span", {}, make("span.what", {}, ...finding.tags.map((tag) => make(`span.tag.${tag}`, {}, tag)), finding.sentence),
      make("span.meta", {}, `${finding.target}, met ${times(finding.count)}${seen}${rate}`)));
  const item = make("li", { id: `finding-${n + 1}`, "data-n": n }, make("h3", {}, head));
  return item;
}

function toggle(item, open = $(".head", item).getAttribute("aria-expanded") !== "true") {
  $(".head", item).setAttribute("aria-expanded", open);
  $(".body", item)?.remove();
  if (open) item.append(body(findings[item.dataset.n]));
}

/* -- the list ------------------------------------------------------------------------------------------------- */

function filter() {
  const words = $("#search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const target = $("#target")?.value ?? "";
  const wanted = [...document.querySelectorAll("#filter .tag[aria-pressed=true]")].map((button) => button.dataset.tag);
  shown = [...findings.keys()].filter((n) => {
    const { text, tags, target: mine } = findings[n];
    return (!target || mine === target) && (!wanted.length || tags.some((tag) => wanted.includes(tag))) && words.every((word) => text.includes(word));
  });
  pages.at = 0;
  list();
}

function list() {
  const first = pages.at * pages.size, some = shown.slice(first, first + pages.size);
  $("#list").replaceChildren(...some.map(row));
  $("#shown").textContent = shown.length === findings.length ? plural(findings.length, "finding") : `${number(shown.length)} of ${plural(findings.length, "finding")}`;
  $("#pager").hidden = shown.length <= pages.size;
  $("#pager span").textContent = `${number(first + 1)} to ${number(first + some.length)} of ${number(shown.length)}`;
  $("#before").disabled = first === 0;
  $("#after").disabled = first + pages.size >= shown.length;
}

function turn(by) {
  pages.at += by;
  list();
  $("#findings").focus();
}

function follow() {
  const n = Number(/^#finding-(\d+)$/.exec(location.hash)?.[1]) - 1;
  if (!(n in findings)) return;
  if (!shown.includes(n)) shown = [...findings.keys()];
  pages.at = Math.floor(shown.indexOf(n) / pages.size);
  list();
  toggle($(location.hash), true);
  $(location.hash).scrollIntoView();
}

async function begin() {
  const packed = Uint8Array.from(atob($("#data").textContent), (c) => c.charCodeAt(0));
  const text = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  [common, ...findings] = text.trimEnd().split("\n").map((line) => JSON.parse(line));
  for (const finding of findings) {
    finding.text = [finding.sentence, finding.signature, finding.target, finding.path, finding.engine, finding.rule].join("\n").toLowerCase();
  }
  if (!findings.length) return;
  $("#filter").hidden = false;
  filter();
  if (location.hash.startsWith("#finding-")) follow();
  else toggle($("#list > li"), true);
}

/* -- the rest of the page ------------------------------------------------------------------------------------- */

function filterGoals() {
  const words = $("#goal-search").value.toLowerCase(), unmet = $("#goal-unmet").checked;
  let count = 0;
  for (const group of document.querySelectorAll("#goals tbody")) {
    let some = false;
    for (const line of group.querySelectorAll("tr:not(.group)")) {
      line.hidden = (unmet && !line.classList.contains("never")) || !line.textContent.toLowerCase().includes(words);
      some ||= !line.hidden;
      count += !line.hidden;
    }
    group.hidden = !some;
  }
  $("#goal-shown").textContent = `${number(count)} shown`;
}

const THEMES = ["auto", "light", "dark"];

function theme(name) {
  document.documentElement.dataset.theme = name;
  $("#theme span").textContent = name;
  try { localStorage.setItem("streamfuzz-theme", name); } catch { /* a file may not keep anything */ }
}

let kept = null;
try { kept = localStorage.getItem("streamfuzz-theme"); } catch { /* as above */ }
theme(THEMES.includes(kept) ? kept : "auto");
$("#theme").hidden = false;
$("#theme").addEventListener("click", () => theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % 3]));
if ($("#goal-filter")) {
  $("#goal-filter").hidden = false;
  $("#goal-filter").addEventListener("input", filterGoals);
}
if ($("#filter")) {
  $("#filter").addEventListener("input", filter);
  for (const form of document.querySelectorAll("form")) form.addEventListener("submit", (event) => event.preventDefault());
  for (const button of document.querySelectorAll("#filter .tag")) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") !== "true");
      filter();
    });
  }
  $("#before").addEventListener("click", () => turn(-1));
  $("#after").addEventListener("click", () => turn(1));
  addEventListener("hashchange", follow);
  addEventListener("beforeprint", () => document.querySelectorAll("#list > li").forEach((item) => toggle(item, true)));
  begin();
}
