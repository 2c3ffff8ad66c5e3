"use strict";
// Everything from the run reaches the page through textContent or attributes, never as markup.
const content = JSON.parse(document.getElementById("content").textContent);
const SVG = "http://www.w3.org/2000/svg";
const PER_PAGE = 20;
const titles = new Map(content.models.map((model) => [model.key, model.title]));
const byKey = new Map(content.cases.map((one) => [one.k, one]));

function make(name, attributes = {}, ...children) {
  const svg = ["svg", "path", "text", "circle", "rect", "line", "title", "g"].includes(name);
  const element = svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function text(place) {
  const found = content.texts[place];
  return Array.isArray(found) ? found : [found, 0];
}

function shorter(words, most) {
  const letters = Array.from(words);
  return letters.length > most ? letters.slice(0, most - 1).join("") + "…" : words;
}

function linkTo(key) {
  try { return "#case=" + encodeURIComponent(key); } catch { return "#cases"; } // half of a character has no address
}

function shown(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "no value" : String(value);
  return Number.isInteger(value) ? String(value) : Math.abs(value) >= 1000 ? value.toPrecision(4) : value.toFixed(3);
}

function isBad(value, metric) {
  const number = value === "∞" ? Infinity : value === "-∞" ? -Infinity : value;
  if (typeof number !== "number" || metric.cut === null) return false;
  return metric.up ? number < metric.cut : number > metric.cut;
}

// ---------------------------------------------------------------- one case

function coloured(one, answer) {
  const letters = Array.from(answer);
  const evidence = make("p", { class: "evidence", "aria-live": "polite" });
  const spans = [];
  for (const [index, list] of Object.entries(one.sp || {}))
    for (const [start, end, kind, label, score, passage, known] of list)
      if (start >= 0 && end > start && start < letters.length)
        spans.push({ start, end: Math.min(end, letters.length), kind, label, score, passage, known, by: content.evaluators[index] });
  const rank = { bad: 0, weak: 1, good: 2 };
  const edges = [...new Set([0, letters.length, ...spans.flatMap((span) => [span.start, span.end])])].sort((a, b) => a - b);
  const body = make("p", { class: "text", dir: "auto" });
  for (let place = 0; place + 1 < edges.length; place++) {
    const piece = letters.slice(edges[place], edges[place + 1]).join("");
    const over = spans.filter((span) => span.start <= edges[place] && span.end >= edges[place + 1]);
    if (!over.length) { body.append(piece); continue; }
    const worst = over.map((span) => span.kind).sort((a, b) => rank[a] - rank[b])[0];
    const told = over.map((span) => `${span.by.name}: ${span.label.replaceAll("_", " ")}` + (span.score === null ? "" : ` ${shown(span.score)}`)
      + (Number.isInteger(span.passage) ? ` (passage ${span.passage + 1})` : "")
      + (span.known ? " · " + Object.entries(span.known).map(([key, value]) => `${key.replaceAll("_", " ")} ${value}`).join(", ") : "")).join(" | ");
    const mark = make("mark", { class: worst, tabindex: "0", title: told }, piece);
    const tell = () => {
      evidence.textContent = told;
      const item = body.closest(".case");
      if (item) item.querySelectorAll(".passage").forEach((passage, number) => passage.classList.toggle("hit", over.some((span) => span.passage === number)));
    };
    mark.addEventListener("mouseenter", tell);
    mark.addEventListener("focus", tell);
    body.append(mark);
  }
  if (spans.length) evidence.textContent = "Point at a coloured part: its verdict and its passage are shown here.";
  return spans.length ? [body, evidence] : [body];
}

function block(label, place) {
  if (place === undefined) return [];
  const [words, more] = text(place);
  const parts = [make("p", { class: "label" }, label), make("p", { class: "text", dir: "auto" }, words || "(empty)")];
  if (more) parts.push(make("p", { class: "note" }, `and ${more} more characters, in cases.jsonl`));
  return parts;
}

function scores(one) {
  const list = make("ul", { class: "chips" });
  const others = make("ul", { class: "chips" });
  for (const [index, values] of Object.entries(one.s)) {
    const evaluator = content.evaluators[index];
    const leading = evaluator.metrics.findIndex((metric) => metric.cut !== null);
    evaluator.metrics.forEach((metric, place) => {
      if (values[place] === null) return;
      const bad = isBad(values[place], metric);
      const name = evaluator.metrics.length > 1 ? `${evaluator.name}: ${metric.key}` : evaluator.name;
      (bad || place === leading ? list : others).append(make("li", bad ? { class: "bad" } : {}, `${bad ? "✕ " : ""}${name} ${shown(values[place])}`));
    });
  }
  if (!others.childElementCount) return [list];
  const fold = make("details", list.childElementCount ? {} : { open: "" }, make("summary", {}, `${others.childElementCount} more scores`), others);
  return [list, fold];
}

function caseElement(one) {
  const item = make("li", { class: "case", id: "case=" + one.k, tabindex: "-1" });
  const failed = (one.f || []).map((index) => content.evaluators[index].name);
  item.append(
    make("h3", {}, make("bdi", {}, shorter(one.q === undefined ? one.k : text(one.q)[0], 200))),
    make("p", { class: "quiet" }, make("bdi", {}, titles.get(one.m) || one.m || "(no model)"), " · ",
      make("a", { href: linkTo(one.k) }, make("bdi", {}, shorter(one.k, 80))),
      one.c ? " · " + one.c.map((name) => shorter(name, 60)).join(", ") : "", one.flip ? " · flipped" : ""),
  );
  if (failed.length) item.append(make("p", {}, make("b", {}, "Fails: "), failed.join(", ")));
  item.append(...block("Question", one.q), ...block("Expected answer", one.e));
  if (one.a !== undefined) {
    const [words, more] = text(one.a);
    item.append(make("p", { class: "label" }, "Answer"), ...coloured(one, words));
    if (more) item.append(make("p", { class: "note" }, `and ${more} more characters, in cases.jsonl`));
  }
  if (one.p) {
    const list = make("ol", { class: "passages" });
    for (const place of one.p) {
      const [words, more] = text(place);
      list.append(make("li", { class: "passage" }, make("p", { class: "text", dir: "auto" }, words),
        more ? make("p", { class: "note" }, `and ${more} more characters, in cases.jsonl`) : null));
    }
    const fold = make("details", failed.length ? { open: "" } : {}, make("summary", {}, `${one.p.length} passages`), list);
    item.append(fold);
  }
  item.append(make("p", { class: "label" }, "Scores"), ...scores(one));
  const silent = Object.entries(one.w || {}).map(([why, list]) => `${list.map((index) => content.evaluators[index].name).join(", ")}: ${why.replaceAll("_", " ")}`);
  if (silent.length) item.append(make("details", {}, make("summary", {}, "Not judged"), make("p", {}, silent.join("; "))));
  return item;
}

// ---------------------------------------------------------------- the list of cases

const form = document.getElementById("filters");
let first = 0;

function matching() {
  const { evaluator, model, state, words } = Object.fromEntries(new FormData(form));
  const index = content.evaluators.findIndex((one) => one.id === evaluator);
  const wanted = words.trim().toLowerCase();
  return content.cases.filter((one) => {
    const failed = one.f || [];
    const fails = index < 0 ? failed.length > 0 : failed.includes(index);
    if (model && one.m !== model) return false;
    if (state === "fail" && !fails) return false;
    if (state === "pass" && fails) return false;
    if (state === "flip" && !one.flip) return false;
    if (!wanted) return true;
    return [one.k, ...[one.q, one.a, one.e].filter((place) => place !== undefined).map((place) => text(place)[0])]
      .some((found) => found.toLowerCase().includes(wanted));
  });
}

function list(cases = matching()) {
  const page = cases.slice(first, first + PER_PAGE);
  document.getElementById("list").replaceChildren(...page.map(caseElement));
  document.getElementById("count").textContent = cases.length
    ? `${first + 1} to ${first + page.length} of ${cases.length} cases` : "No case of this page is like that.";
  document.getElementById("earlier").disabled = first === 0;
  document.getElementById("later").disabled = first + PER_PAGE >= cases.length;
}

function turn(by) {
  first = Math.max(0, first + by);
  list();
  document.getElementById("cases").scrollIntoView();
}

form.addEventListener("input", () => { first = 0; list(); });
form.addEventListener("submit", (event) => event.preventDefault());
document.getElementById("earlier").addEventListener("click", () => turn(-PER_PAGE));
document.getElementById("later").addEventListener("click", () => turn(PER_PAGE));
document.querySelectorAll("a.act").forEach((link) => link.addEventListener("click", () => {
  form.elements.evaluator.value = link.dataset.evaluator || "";
  form.elements.model.value = link.dataset.model || "";
  form.elements.state.value = "fail";
  form.elements.words.value = "";
  first = 0;
  list();
}));

function follow() {
  let wanted = location.hash.slice(1);
  try { wanted = decodeURIComponent(wanted); } catch { return; }
  if (wanted.startsWith("e-")) { const part = document.getElementById(wanted); if (part) part.open = true; return; }
  if (!wanted.startsWith("case=")) return;
  const one = byKey.get(wanted.slice(5));
  if (!one) {
    document.getElementById("count").textContent = "That case is not on this page; cases.jsonl and results/ have it.";
    document.getElementById("cases").scrollIntoView();
    return;
  }
  form.reset();
  form.elements.state.value = "";
  const cases = matching();
  first = Math.floor(cases.indexOf(one) / PER_PAGE) * PER_PAGE;
  list(cases);
  const item = document.getElementById("case=" + one.k);
  if (item) { item.scrollIntoView(); item.focus({ preventScroll: true }); }
}

window.addEventListener("hashchange", follow);
if (!content.cases.some((one) => one.f)) form.elements.state.value = "";
list();
follow();
