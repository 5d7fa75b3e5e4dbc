// The community's A2A provider for Vercel's AI SDK as a client. A question it tells as text; it has no way to answer one.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.NODE_MODULES}/`);
const load = async (name) => {
  const found = `${process.env.NODE_MODULES}/${name}/package.json`;
  const { main } = require(found);
  return import(pathToFileURL(`${process.env.NODE_MODULES}/${name}/${main}`));
};

const [url, send, stream] = process.argv.slice(2);
const log = console.log;
console.log = () => {}; // the provider tells every event there
const { a2a } = await load("a2a-ai-provider");
const { generateText, streamText } = await load("ai");
const model = a2a(`${url}/.well-known/agent-card.json`);
const told = { sent: (await generateText({ model, prompt: send })).text, streamed: "" };
for await (const piece of streamText({ model, prompt: stream }).textStream) told.streamed += piece;
log(JSON.stringify(told));
