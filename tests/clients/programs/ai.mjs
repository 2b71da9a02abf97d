// Vercel's AI SDK with each of its providers; it runs the tools itself.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool as define } from "ai";
import { ask, result, tool } from "./program.mjs";

const at = { baseURL: `${ask.address}/v1`, apiKey: "k" };
const model = {
  responses: () => createOpenAI(at)(ask.model),
  chat: () => createOpenAI(at).chat(ask.model),
  compatible: () => createOpenAICompatible({ ...at, name: "gateway" })(ask.model),
  messages: () => createAnthropic(at)(ask.model),
}[ask.kind]();
const thinking = { type: "enabled", budgetTokens: 1024 };
const tools = {
  [tool.name]: define({
    description: tool.description,
    inputSchema: jsonSchema(tool.parameters),
    execute: async () => result,
  }),
};
const messages = [];
for (const question of ask.questions) {
  messages.push({ role: "user", content: question });
  const asked = {
    model,
    messages,
    tools,
    maxRetries: 0,
    stopWhen: stepCountIs(50),
    providerOptions: { anthropic: { thinking } },
    onError: ({ error }) => {
      throw error;
    },
  };
  const reply = ask.streamed ? streamText(asked) : await generateText(asked);
  const text = await reply.text;
  messages.push(...(await reply.response).messages);
  console.log(text);
}
