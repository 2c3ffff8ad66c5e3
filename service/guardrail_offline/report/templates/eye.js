// The eval eye: a wheel of two rings. Inside the parts of where one is, outside the parts of those.
const wheel = document.getElementById("wheel");
let path = [];

function nodeAt(trail) {
  return trail.reduce((node, place) => node.parts[place], content.eye);
}

function point(radius, turn) {
  const angle = 2 * Math.PI * turn - Math.PI / 2;
  return `${(radius * Math.cos(angle)).toFixed(2)} ${(radius * Math.sin(angle)).toFixed(2)}`;
}

function arc(inner, outer, from, to) {
  const end = to - from >= 0.9999 ? to - 0.0001 : to;
  const large = end - from > 0.5 ? 1 : 0;
  return `M${point(inner, from)} L${point(outer, from)} A${outer} ${outer} 0 ${large} 1 ${point(outer, end)}`
    + ` L${point(inner, end)} A${inner} ${inner} 0 ${large} 0 ${point(inner, from)} Z`;
}

function weight(node) {
  return node.parts && node.parts.length ? node.parts.length : 1;
}

function said(node) {
  return `${node.name}: ${node.told || content.words[node.light]}`;
}

function part(node, trail, inner, outer, from, to) {
  const element = make("path", {
    d: arc(inner, outer, from, to), class: "part " + node.light, role: "button", tabindex: "0", "aria-label": said(node),
  }, make("title", {}, said(node)));
  element.addEventListener("click", () => enter(trail, true));
  element.addEventListener("keydown", (event) => walk(event, element, trail));
  return element;
}

function walk(event, element, trail) {
  const around = [...wheel.querySelectorAll(".part")];
  const place = around.indexOf(element);
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); enter(trail, true); }
  else if (event.key === "ArrowRight" || event.key === "ArrowDown") { event.preventDefault(); around[(place + 1) % around.length].focus(); }
  else if (event.key === "ArrowLeft" || event.key === "ArrowUp") { event.preventDefault(); around[(place - 1 + around.length) % around.length].focus(); }
  else if (event.key === "Escape" && path.length) { event.preventDefault(); enter(path.slice(0, -1), true); }
}

function label(words, radius, turn, room) {
  if (room < 0.035) return null;
  const degrees = turn * 360 - 90;
  const flip = degrees > 90 || degrees < -90 ? 180 : 0;
  const [x, y] = point(radius, turn).split(" ");
  return make("text", { x, y, "text-anchor": "middle", "dominant-baseline": "middle",
    transform: `rotate(${degrees + flip} ${x} ${y})` }, shorter(words, 12));
}

function drawWheel(node) {
  const parts = node.parts || [];
  const total = parts.reduce((sum, one) => sum + weight(one), 0);
  const drawn = [];
  let from = 0;
  parts.forEach((one, place) => {
    const to = from + weight(one) / total;
    drawn.push(part(one, [...path, place], 34, 68, from, to), label(one.name, 51, (from + to) / 2, to - from));
    const inner = one.parts || [];
    inner.forEach((below, number) => {
      const start = from + (to - from) * number / inner.length;
      const end = from + (to - from) * (number + 1) / inner.length;
      drawn.push(part(below, [...path, place, number], 70, 104, start, end), label(below.name, 87, (start + end) / 2, end - start));
    });
    from = to;
  });
  drawn.push(make("text", { class: "centre", y: "-2" }, shorter(node.name, 14)), make("text", { class: "centre", y: "8" }, shorter(node.told || content.words[node.light], 16)));
  wheel.replaceChildren(...drawn.filter(Boolean));
}

function crumbs() {
  const box = make("span", { class: "crumbs" });
  for (let depth = 0; depth <= path.length; depth++) {
    const name = nodeAt(path.slice(0, depth)).name;
    if (depth === path.length) box.append(make("b", {}, make("bdi", {}, name)));
    else {
      const button = make("button", { type: "button" }, make("bdi", {}, shorter(name, 40)));
      button.addEventListener("click", () => enter(path.slice(0, depth), true));
      box.append(button, "›");
    }
  }
  document.getElementById("trail").replaceChildren(box);
}

function inside(node) {
  const box = document.getElementById("inside");
  if (node.dots) { box.replaceChildren(...dots(node)); return; }
  const parts = make("ul", { class: "checks" });
  (node.parts || []).forEach((one, place) => {
    const link = make("button", { type: "button" }, make("bdi", {}, one.name));
    link.addEventListener("click", () => enter([...path, place], true));
    parts.append(make("li", {}, make("span", { class: "light " + one.light, "aria-hidden": "true" }, content.marks[one.light]), " ", link, " ",
      make("span", { class: "quiet" }, content.words[one.light] + (one.told ? ", " + one.told : ""))));
  });
  box.replaceChildren(parts);
}

function dots(node) {
  const { evaluator, metric, model, low, high, histogram } = node.dots;
  const spec = content.evaluators[evaluator].metrics[metric];
  const most = Math.max(1, ...histogram);
  const at = (value) => 2 + 96 * Math.min(1, Math.max(0, (value - low) / (high - low)));
  const drawing = make("svg", { class: "dots", viewBox: "0 0 100 40", preserveAspectRatio: "none", role: "group", "aria-label": "A dot per case of this page over the values of all cases" });
  histogram.forEach((count, place) => {
    const height = 34 * count / most;
    drawing.append(make("rect", { class: "track", x: (2 + 96 * place / histogram.length).toFixed(2), y: (38 - height).toFixed(2), width: (94 / histogram.length).toFixed(2), height: height.toFixed(2) }));
  });
  if (spec.cut !== null) drawing.append(make("rect", { class: "cut", x: at(spec.cut) - 0.2, y: 0, width: 0.4, height: 40 }));
  const own = content.cases.filter((one) => one.m === model && one.s[evaluator] && typeof one.s[evaluator][metric] === "number")
    .sort((a, b) => (spec.up ? 1 : -1) * (a.s[evaluator][metric] - b.s[evaluator][metric]));
  const stacks = new Map();
  own.slice(0, 400).forEach((one) => {
    const value = one.s[evaluator][metric];
    const slot = Math.round(at(value));
    const height = stacks.get(slot) || 0;
    stacks.set(slot, height + 1);
    const bad = isBad(value, spec);
    const dot = make("rect", { class: "dot " + (spec.cut === null ? "none" : bad ? "bad" : ""), x: slot - 0.6, y: Math.max(0, 36 - 3 * height), width: 1.2, height: 2.4 }, make("title", {}, `${one.k}: ${shown(value)}`));
    dot.addEventListener("click", () => { location.hash = linkTo(one.k); });
    drawing.append(dot);
  });
  const names = make("ol", { class: "checks" });
  own.slice(0, 12).forEach((one) => names.append(make("li", {}, make("a", { href: linkTo(one.k) },
    make("bdi", {}, shorter(one.q === undefined ? one.k : text(one.q)[0], 90))), ` ${isBad(one.s[evaluator][metric], spec) ? "✕ " : ""}${shown(one.s[evaluator][metric])}`)));
  return [make("p", { class: "quiet" }, `${shown(low)} to ${shown(high)}; ${spec.up ? "higher" : "lower"} is better${spec.cut === null ? "" : "; the line is the threshold " + shown(spec.cut)}. Grey: all judged answers. Dots: the ${own.length} on this page.`),
    drawing, make("p", {}, make("b", {}, "The worst of them")), names];
}

function enter(trail, focus) {
  let node = content.eye;
  path = [];
  for (const place of trail) { node = node.parts[place]; path.push(place); }
  const rings = node.parts && node.parts.length ? node : null;
  if (rings) drawWheel(node);
  else { const here = path; path = path.slice(0, -1); drawWheel(nodeAt(path)); path = here; }
  crumbs();
  inside(node);
  if (focus && rings) { const start = wheel.querySelector(".part"); if (start) start.focus({ preventScroll: true }); }
}

enter([], false);
