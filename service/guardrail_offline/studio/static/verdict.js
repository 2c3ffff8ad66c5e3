// A verdict: its decision, the answer with marks, the passages, and every score.
import { make } from "/static/requests.js";

const KINDS = { supported: "good", not_mentioned: "weak", contradicted: "bad" };
const RANK = { bad: 0, weak: 1, good: 2 };
const MOST_MARKS = 400;

export function words(name) { return String(name).replaceAll("_", " "); }

export function figure(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "" : String(value);
  return Number.isInteger(value) ? String(value) : Math.abs(value) >= 1000 ? value.toPrecision(4) : value.toFixed(3);
}

function beyond(metric, score) {
  if (!metric || metric.threshold === null || typeof score !== "number") return false;
  return metric.direction === "higher_is_better" ? score < metric.threshold : score > metric.threshold;
}

// Marks of one answer: findings, and what was found to be supported.
export function marksOf(detectors, length) {
  const marks = [];
  for (const [name, detector] of Object.entries(detectors)) {
    for (const span of detector.spans || []) {
      const known = KINDS[span.label];
      const metric = detector.metrics ? detector.metrics[span.label] : undefined;
      if (!known && metric && !beyond(metric, span.score)) continue;
      if (!known && span.start <= 0 && span.end >= length) continue;
      const kind = known === "good" ? "good" : detector.flagged ? "bad" : "weak";
      marks.push({ ...span, kind, by: name });
    }
  }
  return marks.filter((mark) => mark.end > mark.start && mark.start < length).slice(0, MOST_MARKS);
}

export function marked(answer, marks, pointed) {
  const letters = Array.from(answer);   // offsets count code points
  const edges = [...new Set([0, letters.length, ...marks.flatMap((m) => [Math.max(0, m.start), Math.min(m.end, letters.length)])])].sort((a, b) => a - b);
  const body = make("p", { class: "text answer-text", dir: "auto" });
  for (let place = 0; place + 1 < edges.length; place++) {
    const piece = letters.slice(edges[place], edges[place + 1]).join("");
    const over = marks.filter((m) => m.start <= edges[place] && m.end >= edges[place + 1]);
    if (!over.length) { body.append(piece); continue; }
    const worst = over.map((m) => m.kind).sort((a, b) => RANK[a] - RANK[b])[0];
    const told = over.map((m) => `${words(m.by)}: ${words(m.label)}${typeof m.score === "number" ? ` ${figure(m.score)}` : ""}`).join(" · ");
    const mark = make("mark", { class: worst, tabindex: "0", title: told }, piece);
    for (const event of ["mouseenter", "focus"]) mark.addEventListener(event, () => pointed(told, over));
    body.append(mark);
  }
  return body;
}

function passageView(text, number, evidence) {
  const item = make("li", {});
  const body = make("p", { class: "text", dir: "auto" });
  const letters = Array.from(text);
  let at = 0;
  for (const { start, end } of evidence.filter((e) => e.context === number).sort((a, b) => a.start - b.start)) {
    if (start < at || end <= start) continue;
    body.append(letters.slice(at, start).join(""), make("mark", { class: "evidence-mark" }, letters.slice(start, end).join("")));
    at = end;
  }
  body.append(letters.slice(at).join(""));
  item.append(body);
  item.classList.toggle("hit", evidence.some((e) => e.context === number));
  return item;
}

export function scores(detectors) {
  const rows = [];
  for (const [name, detector] of Object.entries(detectors)) {
    // Of metrics that nothing is compared with, the first stands for all.
    const metrics = Object.entries(detector.metrics || {})
      .filter(([, metric], index) => !index || metric.flagged || (metric.threshold !== null && metric.threshold !== undefined));
    if (!metrics.length) metrics.push([null, null]);
    metrics.forEach(([key, metric], index) => rows.push(make("tr", { class: detector.flagged ? "flagged" : "" },
      index ? make("td", {}) : make("th", { scope: "row" }, words(name)),
      make("td", {}, key ? words(key) : ""),
      make("td", { class: "figures" }, metric ? figure(metric.score) : ""),
      make("td", { class: "figures quiet" }, metric && metric.threshold !== null && metric.threshold !== undefined
        ? `${metric.direction === "higher_is_better" ? "≥" : "≤"} ${figure(metric.threshold)}` : ""),
      make("td", {}, metric && metric.flagged ? make("span", { class: "chip flag" }, "flags")
        : detector.state === "evaluated" ? "" : make("span", { class: detector.flagged ? "chip flag" : "chip open" }, words(detector.reason || detector.state))))));
  }
  return make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Scores" }, make("table", { class: "list small" },
    make("thead", {}, make("tr", {}, ...["Check", "Metric", "Score", "Passes", ""].map((word) => make("th", { scope: "col" }, word || make("span", { class: "unseen" }, "Outcome"))))),
    make("tbody", {}, ...rows)));
}

// content: {decision, action, summary, answer, contexts, detectors}; answer and contexts may be null.
export function verdictView(content) {
  const parts = [make("p", { class: `banner ${content.decision}` },
    make("strong", {}, content.decision === "flag" ? "Flag" : "Pass"), make("span", {}, content.summary || ""),
    make("span", { class: "chip" }, `action: ${content.action}`),
    content.status === "complete" ? null : make("span", { class: "chip open" }, words(content.status)))];
  if (content.answer !== null && content.answer !== undefined) {
    const marks = marksOf(content.detectors, Array.from(content.answer).length);
    const evidence = make("p", { class: "evidence", "aria-live": "polite" }, marks.length ? "Point at a marked part: its check and its evidence are shown." : "No part is marked.");
    const passages = make("ol", { class: "passages" });
    const draw = (found) => passages.replaceChildren(...(content.contexts || []).map((text, number) => passageView(text, number, found)));
    draw([]);
    const body = marked(content.answer, marks, (told, over) => { evidence.textContent = told; draw(over.flatMap((m) => m.evidence || [])); });
    parts.push(make("h2", {}, "Answer"), body, evidence);
    if ((content.contexts || []).length) parts.push(make("h2", {}, "Passages"), passages);
  }
  const told = Object.values(content.detectors).map((d) => d.explanation).filter(Boolean);
  if (told.length) parts.push(make("h2", {}, "Why"), make("ul", { class: "why" }, ...told.map((text) => make("li", {}, text))));
  parts.push(make("h2", {}, "Scores"), scores(content.detectors));
  return parts;
}
