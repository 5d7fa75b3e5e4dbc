// Every operation of @a2a-js/sdk 0.3 on the agent below the URL; what came of each as one JSON document on stdout.
// The agent answers `echo: TEXT`; it holds what says "hold", and asks first where a message says "ask".
const { ClientFactory } = require("a2a-js-03/client");

let count = 0;
const say = (text, more = {}) => ({
  kind: "message", messageId: `m${++count}`, role: "user", parts: [{ kind: "text", text }], ...more,
});
const failure = (act) => act().then(() => "none", (error) => error.constructor.name);

async function main(url) {
  const client = await new ClientFactory().createFromUrl(url);
  const told = { name: (await client.getAgentCard()).name };

  told.sent = await client.sendMessage({ message: say("hi") });
  told.streamed = [];
  for await (const event of client.sendMessageStream({ message: say("hello") })) told.streamed.push(event);

  const held = await client.sendMessage({ message: say("hold"), configuration: { blocking: false } });
  told.held = await client.getTask({ id: held.id });
  told.followed = [];
  for await (const event of client.resubscribeTask({ id: held.id })) {
    if (told.followed.push(event) === 1) told.canceled = await client.cancelTask({ id: held.id });
  }
  told.late = [];
  for await (const event of client.resubscribeTask({ id: held.id })) told.late.push(event);

  told.asked = await client.sendMessage({ message: say("ask") });
  told.answered = await client.sendMessage({ message: say("yes", { taskId: told.asked.id }) });

  told.unknown = await failure(() => client.getTask({ id: "nope" }));
  told.over = await failure(() => client.cancelTask({ id: held.id }));
  process.stdout.write(JSON.stringify(told));
}

main(process.argv[2]);
