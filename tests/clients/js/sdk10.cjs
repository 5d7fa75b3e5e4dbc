// As sdk03.cjs, for @a2a-js/sdk 1.3; the second argument is the binding.
const { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory, RestTransportFactory } = require("a2a-js-10/client");
const { Role, TaskState } = require("a2a-js-10");

let count = 0;
const say = (text, more = {}, configuration = {}) => ({
  tenant: "", metadata: undefined,
  message: {
    messageId: `m${++count}`, contextId: "", taskId: "", role: Role.ROLE_USER, metadata: undefined, extensions: [],
    referenceTaskIds: [], ...more,
    parts: [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "" }],
  },
  configuration: { acceptedOutputModes: [], returnImmediately: false, ...configuration },
});
const failure = (act) => act().then(() => "none", (error) => error.constructor.name);

async function main(url, binding) {
  const transport = binding === "JSONRPC" ? new JsonRpcTransportFactory() : new RestTransportFactory();
  const factory = new ClientFactory({ ...ClientFactoryOptions.default, transports: [transport] });
  const client = await factory.createFromUrl(url);
  const told = { name: (await client.getAgentCard()).name, version: client.protocolVersion };

  told.sent = await client.sendMessage(say("hi"));
  told.streamed = [];
  for await (const event of client.sendMessageStream(say("hello"))) told.streamed.push(event);

  const held = await client.sendMessage(say("hold", {}, { returnImmediately: true }));
  told.held = await client.getTask({ tenant: "", id: held.id });
  told.followed = [];
  for await (const event of client.resubscribeTask({ tenant: "", id: held.id })) {
    const first = told.followed.push(event) === 1;
    if (first) told.canceled = await client.cancelTask({ tenant: "", id: held.id, metadata: undefined });
  }

  told.asked = await client.sendMessage(say("ask"));
  told.answered = await client.sendMessage(say("yes", { taskId: told.asked.id }));

  told.listed = (await client.listTasks({ tenant: "", contextId: "", status: TaskState.TASK_STATE_UNSPECIFIED,
    pageToken: "", statusTimestampAfter: undefined })).tasks.length;
  told.unknown = await failure(() => client.getTask({ tenant: "", id: "nope" }));
  told.over = await failure(() => client.cancelTask({ tenant: "", id: held.id, metadata: undefined }));
  process.stdout.write(JSON.stringify(told));
}

main(process.argv[2], process.argv[3]);
