import { ask, find, make } from "/static/requests.js";
import { verdictView } from "/static/verdict.js";

const root = `/decisions/${find("decision").dataset.key}`;
const KEPT = {
  none: "Texts are not kept by this store.", hashes: "Only hashes of the texts are kept.",
  redacted: "Parts that the policy withheld are replaced.", full: "",
};
const comment = document.getElementById("comment"); // not there where nothing would be kept
const WORDS = { pass: "good", fail: "bad", abstain: "cannot tell" };

function drawFeedback(feedback) {
  find("said").replaceChildren(...feedback.map((one) => make("span", { class: `chip ${{ pass: "good", fail: "bad" }[one.label] || "open"}` }, `${WORDS[one.label]}, ${one.mine ? "you" : one.caller}${one.comment ? `: “${one.comment}”` : ""}`)));
  for (const id of ["pass", "fail", "abstain"])
    find(id).setAttribute("aria-pressed", String(feedback.some((one) => one.mine && one.label === id)));
}

async function say(label) {
  find("saved").textContent = "Saving…";
  try {
    const reply = await ask(`${root}/feedback`, "POST", { label, comment: comment?.value || null });
    drawFeedback(reply.feedback);
    find("saved").textContent = reply.state === "known" ? "Said before" : "Saved";
  } catch (error) {
    find("saved").textContent = "";
    find("trouble").hidden = false;
    find("trouble").textContent = error.status ? error.message : "The studio does not answer; your feedback is not saved.";
  }
}

const KEYS = { p: () => say("pass"), f: () => say("fail"), a: () => say("abstain"), ArrowRight: () => find("older")?.click(), ArrowLeft: () => find("newer")?.click(), c: () => comment?.focus() };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target === comment) {
    if (event.key === "Escape" || (event.key === "Enter" && !event.isComposing)) comment.blur();
    return;
  }
  const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (act) { event.preventDefault(); act(); }
});
for (const id of ["pass", "fail", "abstain"]) find(id).addEventListener("click", () => say(id));

try {
  const content = await ask(`${root}/data`);
  const view = verdictView(content);
  const parts = [];
  if (KEPT[content.texts]) parts.push(make("p", { class: "quiet" }, KEPT[content.texts]));
  if (content.question) parts.push(make("h2", {}, "Question"), make("p", { class: "text", dir: "auto" }, content.question));
  const place = view.findIndex((part) => part.textContent === "Scores" || part.textContent === "Why");
  find("decision").replaceChildren(make("section", { class: "sheet", tabindex: "0", "aria-label": "Texts" }, view[0], ...parts, ...view.slice(1, place)),
    make("section", { class: "sheet", tabindex: "0", "aria-label": "Checks" }, ...view.slice(place)));
  drawFeedback(content.feedback);
  if (comment && !comment.value) comment.value = content.feedback.find((one) => one.mine)?.comment || "";
} catch (error) {
  find("trouble").hidden = false;
  find("trouble").textContent = error.message || "The studio does not answer.";
}
