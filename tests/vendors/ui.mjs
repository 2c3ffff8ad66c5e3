// npm `ai`: `node ui.mjs serve` sends its streams; `node ui.mjs read VERSION URL` reads one, asked for
// on standard input. npm `@langchain/langgraph-sdk`: `node ui.mjs graph URL` streams a run.
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { readFileSync } from "node:fs";

const load = (version) => import(`ai${version}`);

/** A model that says a text in pieces, after a thought, in the terms of each version. */
function model(version, ai, pieces) {
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2, promptTokens: 1, completionTokens: 1 };
  const newer = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const chunks =
    version === "4"
      ? [...pieces.map((textDelta) => ({ type: "text-delta", textDelta })), { type: "finish", finishReason: "stop", usage }]
      : [
          { type: "stream-start", warnings: [] },
          { type: "text-start", id: "1" },
          ...pieces.map((delta) => ({ type: "text-delta", id: "1", delta })),
          { type: "text-end", id: "1" },
          version === "5"
            ? { type: "finish", finishReason: "stop", usage }
            : { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: newer },
        ];
  const stream = () => new ReadableStream({
    start(controller) {
      chunks.forEach((chunk) => controller.enqueue(chunk));
      controller.close();
    },
  });
  return {
    specificationVersion: { 4: "v1", 5: "v2", 7: "v4" }[version],
    provider: "none",
    modelId: "none",
    supportedUrls: {},
    defaultObjectGenerationMode: undefined,
    doStream: async () => ({ stream: stream(), rawCall: { rawPrompt: null, rawSettings: {} } }),
  };
}

async function serve() {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const { version, pieces } = JSON.parse(body);
    const ai = await load(version);
    const result = ai.streamText({ model: model(version, ai, pieces), prompt: "x" });
    const reply = version === "4" ? result.toDataStreamResponse() : result.toUIMessageStreamResponse();
    response.writeHead(reply.status, Object.fromEntries(reply.headers));
    Readable.fromWeb(reply.body).pipe(response);
  });
  server.listen(0, "127.0.0.1", () => console.log(server.address().port));
  process.stdin.on("end", () => process.exit()).resume();
}

async function read(version, url, body) {
  const ai = await load(version);
  const seen = { text: "", reason: null, parsed: [] };
  if (version === "4") {
    const { processDataStream } = await import("@ai-sdk/ui-utils");
    const reply = await fetch(url, { method: "POST", body });
    const keep = (kind) => (value) => void seen.parsed.push([kind, value]);
    await processDataStream({
      stream: reply.body,
      onTextPart: (value) => void (seen.text += value),
      onFinishMessagePart: (value) => void ((seen.reason = value.finishReason), keep("finish")(value)),
      onFinishStepPart: keep("step"),
      onErrorPart: keep("error"),
      onMessageAnnotationsPart: keep("annotations"),
    });
  } else {
    const transport = new ai.DefaultChatTransport({
      api: url,
      prepareSendMessagesRequest: () => ({ body: JSON.parse(body) }),
    });
    const messages = [{ id: "1", role: "user", parts: [{ type: "text", text: "x" }] }];
    const stream = await transport.sendMessages({ chatId: "1", messages, trigger: "submit-message" });
    const [one, other] = stream.tee();
    const chunks = (async () => {
      for await (const chunk of one) {
        seen.parsed.push(chunk);
        seen.reason = chunk.finishReason ?? seen.reason;
      }
    })();
    let last;
    for await (const message of ai.readUIMessageStream({ stream: other, terminateOnError: true })) last = message;
    await chunks;
    seen.parsed.push(last);
    seen.text = last.parts.filter((part) => part.type === "text").map((part) => part.text).join("");
  }
  console.log(JSON.stringify(seen));
}

async function graph(apiUrl, body) {
  const { Client } = await import("@langchain/langgraph-sdk");
  const { assistant, input, streamMode } = JSON.parse(body);
  const parts = [];
  const client = new Client({ apiUrl, apiKey: "x", callerOptions: { maxRetries: 0 } });
  for await (const part of client.runs.stream(null, assistant, { input, streamMode })) parts.push(part);
  console.log(JSON.stringify(parts));
}

const [what, ...rest] = process.argv.slice(2);
const asked = () => readFileSync(0, "utf8");
await (what === "serve" ? serve() : what === "graph" ? graph(...rest, asked()) : read(...rest, asked()));
