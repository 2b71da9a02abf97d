// Reads {histories, streams} from a file, and prints what the AI SDK makes of each.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, file] = process.argv.slice(2);
const load = name => import(pathToFileURL(createRequire(`${folder}/`).resolve(name)).href);
const ai = await load("ai");
const { parseJsonEventStream } = await load("@ai-sdk/provider-utils");
const { histories, streams } = JSON.parse(readFileSync(file, "utf8"));

const validated = [];
for (const messages of histories) {
  const answer = await ai.safeValidateUIMessages({ messages });
  if (!answer.success) { validated.push({ error: String(answer.error) }); continue; }
  await ai.convertToModelMessages(answer.data, { ignoreIncompleteToolCalls: true });
  validated.push({ messages: answer.data });
}

const read = [];
for (const text of streams) {
  const problems = [];
  const bytes = new Response(text).body;
  const chunks = parseJsonEventStream({ stream: bytes, schema: ai.uiMessageChunkSchema })
    .pipeThrough(new TransformStream({
      transform(parsed, controller) {
        if (parsed.success) controller.enqueue(parsed.value);
        else problems.push(String(parsed.error));
      },
    }));
  let last = null;
  const stream = ai.readUIMessageStream({ stream: chunks, onError: e => problems.push(String(e)) });
  for await (const message of stream) last = message;
  const again = last && await ai.safeValidateUIMessages({ messages: [last] });
  if (again && !again.success) problems.push(String(again.error));
  read.push({ problems, message: last });
}
console.log(JSON.stringify({ validated, read }));
