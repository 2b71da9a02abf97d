// LangChain's `ChatOpenAI`, in both of OpenAI's protocols.
import { concat } from "@langchain/core/utils/stream";
import { ChatOpenAI } from "@langchain/openai";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ask, result, tool } from "./program.mjs";

const model = new ChatOpenAI({
  model: ask.model,
  apiKey: "k",
  maxRetries: 0,
  useResponsesApi: ask.kind === "responses",
  configuration: { baseURL: `${ask.address}/v1` },
}).bindTools([{ type: "function", function: tool }]);

async function reply(messages) {
  if (!ask.streamed) return await model.invoke(messages);
  let whole;
  for await (const chunk of await model.stream(messages))
    whole = whole === undefined ? chunk : concat(whole, chunk);
  return whole;
}

const messages = [];
for (const question of ask.questions) {
  messages.push(new HumanMessage(question));
  for (;;) {
    const said = await reply(messages);
    messages.push(said);
    const calls = said.tool_calls ?? [];
    for (const { id } of calls)
      messages.push(new ToolMessage({ content: result, tool_call_id: id }));
    if (calls.length === 0) {
      console.log(said.text);
      break;
    }
  }
}
