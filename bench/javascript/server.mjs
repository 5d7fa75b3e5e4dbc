// The agent of bench/a2a.py on the JavaScript SDK, as its own samples build one: express, tasks in memory.
//
//     node server.mjs          # in the folder with node_modules; prints its port and the path of its endpoint

import { randomUUID } from "node:crypto";
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { UserBuilder, jsonRpcHandler } from "@a2a-js/sdk/server/express";
import { TaskState } from "@a2a-js/sdk";
import express from "express";

const status = (state) => ({ state, timestamp: new Date().toISOString(), message: undefined });

class Echo {
  async execute({ taskId, contextId, userMessage }, bus) {
    const ids = { taskId, contextId };
    const said = userMessage.parts.map((part) => (part.content?.$case === "text" ? part.content.value : "")).join("");
    bus.publish(AgentEvent.task({
      id: taskId, contextId, status: status(TaskState.TASK_STATE_SUBMITTED), artifacts: [], history: [userMessage], metadata: {},
    }));
    bus.publish(AgentEvent.statusUpdate({ ...ids, status: status(TaskState.TASK_STATE_WORKING), metadata: {} }));
    const parts = [{ content: { $case: "text", value: `echo: ${said}` }, metadata: undefined, filename: "", mediaType: "text/plain" }];
    bus.publish(AgentEvent.artifactUpdate({
      ...ids, append: false, lastChunk: true, metadata: {},
      artifact: { artifactId: randomUUID(), name: "output", description: "", parts, metadata: undefined, extensions: [] },
    }));
    bus.publish(AgentEvent.statusUpdate({ ...ids, status: status(TaskState.TASK_STATE_COMPLETED), metadata: {} }));
  }

  async cancelTask() {}
}

const card = {
  name: "echo", description: "", version: "1", documentationUrl: "", signatures: [], skills: [], securitySchemes: {},
  supportedInterfaces: [{ url: "http://x/", protocolBinding: "JSONRPC", tenant: "", protocolVersion: "1.0" }],
  capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
  securityRequirements: [], defaultInputModes: ["text"], defaultOutputModes: ["text"],
};
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Echo());
const app = express();
app.use("/a2a", jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
const server = app.listen(0, "127.0.0.1", () => console.log(`${server.address().port} /a2a`));
