// One case at a time. A label is kept in this browser until the studio says that it is on disk.
import { ask, find, make } from "/static/requests.js";

const place = find("labelling").dataset;
const adjudicating = place.adjudicating === "yes";
const root = `/label/${place.name}`;
const memory = `studio ${place.name} ${place.person} ${adjudicating ? "settle" : "label"}`;
const WORDS = { pass: "Pass", fail: "Flag", abstain: "Abstain" };
const RETRY_MS = 1500;

let cases = [];        // [place, label]
let at = -1;           // index in `cases`
let shown = null;      // the case as the studio sent it
let busy = false;
const undone = readJson(sessionStorage, `${memory} undo`, []);

function readJson(store, key, fallback) {
  try { return JSON.parse(store.getItem(key)) ?? fallback; } catch { return fallback; }
}

function keep(store, key, value) {
  if (value === null) store.removeItem(key); else store.setItem(key, JSON.stringify(value));
}

function trouble(words) {
  find("trouble").textContent = words;
  find("trouble").hidden = !words;
}

function enable() {
  for (const id of ["pass", "fail", "abstain"]) if (find(id)) find(id).disabled = busy || !shown;
  find("undo").disabled = busy || !undone.length;
  find("previous").disabled = busy || at <= 0;
  find("next").disabled = busy || at + 1 >= cases.length;
}

function tell(progress) {
  const parts = [`${progress.labelled} of ${progress.cases} labelled`];
  if (progress.annotators > 1) parts.push(`${progress.annotators} people`);
  if (progress.kappa !== null) parts.push(`κ ${progress.kappa.toFixed(2)} on ${progress.by_two}`);
  if (progress.disputed) parts.push(`${progress.disputed} to settle`);
  find("progress").textContent = parts.join(" · ");
  const settle = find("to-settle");
  if (settle) { settle.hidden = !progress.disputed; settle.textContent = `Settle ${progress.disputed}`; }
}

function drawStrip() {
  const strip = find("strip");
  if (strip.childElementCount !== cases.length) {
    strip.replaceChildren(...cases.map((_, index) => {
      const cell = make("button", { type: "button", class: "cell", tabindex: "-1" });
      cell.addEventListener("click", () => go(index));
      return cell;
    }));
  }
  cases.forEach(([, label], index) => {
    const cell = strip.children[index];
    cell.className = `cell ${label || "none"}`;
    cell.setAttribute("aria-label", `Case ${index + 1}: ${label ? WORDS[label].toLowerCase() : "no label"}`);
    if (index === at) cell.setAttribute("aria-current", "true"); else cell.removeAttribute("aria-current");
  });
  const current = strip.children[at];
  if (current) strip.scrollTop = current.offsetTop - strip.offsetTop - strip.clientHeight / 2;
}

function drawCase() {
  find("case").hidden = !shown;
  find("done").hidden = Boolean(shown);
  if (!shown) {
    find("place").textContent = "";
    find("done").textContent = adjudicating
      ? "No disagreement is left to settle."
      : "Every case of this sample has your label.";
    return;
  }
  find("place").textContent = `Case ${at + 1} of ${cases.length}` + (shown.label ? `: ${WORDS[shown.label]}` : "");
  find("question").textContent = shown.question || "(no question)";
  find("answer").textContent = shown.answer || "(empty)";
  find("passages").replaceChildren(...shown.contexts.map((text) => make("li", {}, make("p", { class: "text", dir: "auto" }, text))));
  if (!shown.contexts.length) find("passages").replaceChildren(make("li", { class: "quiet" }, "No passage was given."));
  find("passages").scrollTop = 0;
  const draft = readJson(localStorage, draftKey(), null);
  find("note").value = draft ?? shown.note;
  if (shown.words) {
    find("words").hidden = false;
    find("words").replaceChildren(make("h2", {}, "Labels so far"), make("ul", { class: "chips" }, ...shown.words.map((one) =>
      make("li", { class: one.label }, WORDS[one.label] || one.label, one.note ? make("span", { class: "said" }, `“${one.note}”`) : null))));
  }
  for (const id of ["pass", "fail", "abstain"])
    if (find(id)) find(id).setAttribute("aria-pressed", String(shown.label === id));
}

function draftKey() { return `${memory} note ${cases[at] ? cases[at][0] : ""}`; }

async function go(index) {
  if (busy || index < 0 || index >= cases.length) return;
  await saveNote();
  await load(index);
}

async function load(index) {
  at = index;
  busy = true;
  enable();
  try {
    shown = await untilHeard(() => ask(`${root}/case/${cases[at][0]}?adjudicating=${adjudicating}`));
    history.replaceState(null, "", `#${at + 1}`);
  } finally {
    busy = false;
  }
  drawCase();
  drawStrip();
  enable();
}

// Repeats a request while the studio does not answer; a refusal is for the caller.
async function untilHeard(request) {
  for (;;) {
    try {
      const reply = await request();
      trouble("");
      return reply;
    } catch (error) {
      if (error.status === 401) {
        trouble("The studio was started anew. Open the address that it printed, in this browser: nothing is lost.");
        throw error;
      }
      if (error.status && error.status !== 507) throw error;
      trouble(error.status === 507
        ? "The studio’s disk is full. Your label is kept in this browser and sent again."
        : "The studio does not answer. Your label is kept in this browser and sent again.");
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

// Returns whether the word is on disk.
async function send(number, label, note, version) {
  keep(localStorage, memory, { number, label, note, version });
  find("saved").textContent = "Saving…";
  try {
    const reply = await untilHeard(() => ask(`${root}/case/${number}`, "PUT", { label, note, version, adjudicating }));
    keep(localStorage, memory, null);
    keep(localStorage, `${memory} note ${number}`, null);
    find("saved").textContent = label ? `Saved: ${WORDS[label]}` : "Saved";
    settleCase(number, reply);
    return reply;
  } catch (error) {
    find("saved").textContent = "";
    if (error.status === 409) {
      keep(localStorage, memory, null);
      settleCase(number, error.content);
      if (cases[at] && cases[at][0] === number) { shown = { ...shown, ...error.content }; drawCase(); }
      const now = error.content.label;
      trouble(`This case was changed elsewhere${now ? ` and is now labelled ${WORDS[now].toLowerCase()}` : ""}. Look again; your next key decides.`);
    }
    return null;
  }
}

function settleCase(number, reply) {
  const found = cases.find(([one]) => one === number);
  if (found) found[1] = reply.label;
  tell(reply.progress);
  drawStrip();
}

async function choose(label) {
  if (busy || !shown || (adjudicating && label === "abstain")) return;
  busy = true;
  enable();
  const number = cases[at][0];
  const before = shown.label;
  const reply = await send(number, label, find("note").value, shown.version);
  busy = false;
  if (reply) {
    undone.push({ number, label: before, note: reply.note, version: reply.version });
    keep(sessionStorage, `${memory} undo`, undone.slice(-200));
    const next = following();
    if (next === null) { shown = { ...shown, ...reply }; finish(); } else await load(next);
  }
  enable();
}

function following() {
  for (let step = 1; step < cases.length; step++) {
    const index = (at + step) % cases.length;
    if (!cases[index][1]) return index;
  }
  return null;
}

function finish() {
  drawCase();
  drawStrip();
  find("done").hidden = false;
  find("done").replaceChildren(adjudicating ? "All disagreements are settled. " : "Every case has your label. ",
    make("a", { href: "/label" }, "Back to the samples"));
}

async function undo() {
  if (busy || !undone.length) return;
  busy = true;
  enable();
  const last = undone.pop();
  keep(sessionStorage, `${memory} undo`, undone);
  const reply = await send(last.number, last.label, last.note, last.version);
  busy = false;
  const index = cases.findIndex(([number]) => number === last.number);
  if (index >= 0) await load(index);
  if (reply) find("saved").textContent = "Undone";
  enable();
}

async function saveNote() {
  const note = find("note").value;
  if (!shown || note === shown.note) return;
  const reply = await send(cases[at][0], shown.label, note, shown.version);
  if (reply) shown = { ...shown, ...reply };
}

const KEYS = {
  p: () => choose("pass"), f: () => choose("fail"), a: () => choose("abstain"), u: undo,
  n: () => find("note").focus(), ArrowLeft: () => go(at - 1), ArrowRight: () => go(at + 1),
};

document.addEventListener("keydown", (event) => {
  if (event.target === find("note")) {
    if (event.key === "Escape") { find("note").blur(); find("answer").focus(); }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
  const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (act) { event.preventDefault(); act(); }
});

find("note").addEventListener("input", () => keep(localStorage, draftKey(), find("note").value));
find("note").addEventListener("blur", saveNote);
for (const id of ["pass", "fail", "abstain"]) find(id)?.addEventListener("click", () => choose(id));
find("undo").addEventListener("click", undo);
find("previous").addEventListener("click", () => go(at - 1));
find("next").addEventListener("click", () => go(at + 1));

async function start() {
  const left = readJson(localStorage, memory, null);
  if (left) await send(left.number, left.label, left.note, left.version);
  const state = await untilHeard(() => ask(`${root}/state?adjudicating=${adjudicating}`));
  cases = state.cases;
  tell(state.progress);
  const wanted = Number.parseInt(location.hash.slice(1), 10) - 1;
  const open = cases.findIndex(([, label]) => !label);
  if (!cases.length) { drawCase(); return; }
  await load(wanted >= 0 && wanted < cases.length ? wanted : Math.max(open, 0));
  if (open < 0 && !(wanted >= 0)) finish();
}

start();
