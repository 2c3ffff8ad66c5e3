import { ask, find, make } from "/static/requests.js";
import { verdictView } from "/static/verdict.js";

const form = find("texts");
const EXAMPLE = {
  question: "When does the pool open?",
  contexts: ["The pool opens at seven in the morning and closes at nine in the evening.",
    "Children under twelve need the company of an adult. Swimming lessons take place on Tuesdays."],
  answer: "The pool opens at seven in the morning. Towels cost five euros. For lessons, write to anna.weber@pool-mail.com.",
};

function addPassage(text = "") {
  const number = find("contexts").querySelectorAll("textarea").length + 1;
  const area = make("textarea", { rows: "3", "aria-label": `Passage ${number}`, placeholder: number === 1 ? "The pool opens at seven." : "" });
  area.value = text;
  find("contexts").append(area);
  return area;
}

function body() {
  const contexts = [...find("contexts").querySelectorAll("textarea")].map((area) => area.value).filter((text) => text.trim());
  const found = { answer: find("answer").value, contexts };
  if (find("question").value.trim()) found.question = find("question").value;
  if (find("policy").value) found.policy = find("policy").value;
  return found;
}

function trouble(words) { find("trouble").textContent = words; find("trouble").hidden = !words; }

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  trouble("");
  find("judge").disabled = true;
  find("models").textContent = "Judging…";
  const asked = body();
  try {
    const reply = await ask("/try/check", "POST", asked);
    find("result").replaceChildren(...verdictView({ ...reply, answer: asked.answer, contexts: asked.contexts }));
    find("result").scrollTop = 0;
    find("commands").hidden = false;
    find("command").textContent = curl(asked);
  } catch (error) {
    trouble(error.message || "The studio does not answer.");
  } finally {
    find("judge").disabled = false;
    find("models").textContent = "";
  }
});

function served(asked) {
  // `name@version` is how the studio names versions; a service knows the live one by its name.
  return asked.policy ? { ...asked, policy: asked.policy.split("@")[0] } : asked;
}

function curl(body) {
  const asked = served(body);
  const text = JSON.stringify(asked).replaceAll("'", "'\\''");
  return `curl -s ${form.dataset.service}/v1/check \\\n  -H 'Content-Type: application/json' \\\n  -d '${text}'`;
}

function python(body) {
  const asked = served(body);
  const given = Object.entries(asked).map(([key, value]) => `        ${key}=${JSON.stringify(value)},`);
  return `from guardrail_client import GuardrailClient\n\nwith GuardrailClient("${form.dataset.service}") as guard:\n    verdict = guard.check(\n${given.join("\n")}\n    )\nprint(verdict.decision, verdict.summary)\n`;
}

async function copy(text) {
  find("command").textContent = text;
  try {
    await navigator.clipboard.writeText(text);
    find("copied").textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(find("command"));
    find("copied").textContent = "Selected: press Ctrl+C";
  }
}

find("copy-curl").addEventListener("click", () => copy(curl(body())));
find("copy-python").addEventListener("click", () => copy(python(body())));
find("more").addEventListener("click", () => addPassage().focus());
find("example").addEventListener("click", () => {
  find("question").value = EXAMPLE.question;
  find("contexts").querySelectorAll("textarea").forEach((area) => area.remove());
  EXAMPLE.contexts.forEach((text) => addPassage(text));
  find("answer").value = EXAMPLE.answer;
});

addPassage();
try {
  const policies = await ask("/try/policies");
  find("policy").replaceChildren(...policies.map((one) => make("option", { value: one.name }, `${one.name}${one.name.includes("@") ? "" : ` ${one.version}`}${one.calibrated ? ", calibrated" : ""}`)));
  find("judge").disabled = false;
  find("models").textContent = "";
} catch (error) {
  find("models").textContent = "";
  trouble(error.message || "The models could not be loaded.");
}
