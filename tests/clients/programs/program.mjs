// What each program is given, and the tool that it has.
const [address, kind, model, form, ...questions] = process.argv.slice(2);

export const ask = { address, kind, model, streamed: form === "streamed", questions };
export const result = "4 C";
export const tool = {
  name: "get_weather",
  description: "Return the weather of a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
