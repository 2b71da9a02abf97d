// The client `openai`: it keeps a reply's text and calls, or sends Responses' items back.
import OpenAI from "openai";
import { ask, result, tool } from "./program.mjs";

const { address, kind, model, streamed, questions } = ask;
const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: "k", maxRetries: 0 });

async function chat(messages) {
  const asked = { model, messages, tools: [{ type: "function", function: tool }] };
  const reply = streamed
    ? await client.chat.completions.stream(asked).finalMessage()
    : (await client.chat.completions.create(asked)).choices[0].message;
  const calls = (reply.tool_calls ?? []).map(({ id, function: { name, arguments: given } }) => ({
    id,
    type: "function",
    function: { name, arguments: given },
  }));
  messages.push({
    role: "assistant",
    content: reply.content || null,
    ...(calls.length ? { tool_calls: calls } : {}),
  });
  for (const call of calls) messages.push({ role: "tool", tool_call_id: call.id, content: result });
  return { calls, text: reply.content };
}

async function responses(input) {
  const asked = { model, input, tools: [{ type: "function", strict: false, ...tool }] };
  const reply = streamed
    ? await client.responses.stream(asked).finalResponse()
    : await client.responses.create(asked);
  input.push(...reply.output);
  const calls = reply.output.filter((item) => item.type === "function_call");
  for (const { call_id } of calls)
    input.push({ type: "function_call_output", call_id, output: result });
  return { calls, text: reply.output_text };
}

const step = kind === "responses" ? responses : chat;
const messages = [];
for (const question of questions) {
  messages.push({ role: "user", content: question });
  let said;
  do said = await step(messages);
  while (said.calls.length);
  console.log(said.text);
}
