// Restarting and stopping an agent, for those who may.

import { h } from "../vendor/preact.mjs";
import { useState } from "../vendor/hooks.mjs";
import { ApiError, agentPath, post } from "./api.js";
import { toast } from "./store.js";

const RUNS = new Set(["starting", "running", "backoff", "stopping"]);

/** @param {{agent: import("./store.js").Agent}} props */
export function Manage({ agent }) {
  const [busy, setBusy] = useState(false);
  /** @param {"restart"|"stop"} act @param {string} done @param {string} ends */
  const ask = async (act, done, ends) => {
    const beside = agent.background ? ` and ${agent.background} more that it runs in the background` : "";
    if (busy || (ends && !confirm(`${act === "stop" ? "Stop" : "Restart"} ${agent.name}? ${ends}${beside}.`))) return;
    setBusy(true);
    try {
      await post(`/control${agentPath(agent.name)}/${act}`);
      toast(`${agent.name} ${done}.`);
    } catch (error) {
      if (error instanceof ApiError) toast(error.message);
    }
    setBusy(false);
  };
  const works = agent.activity === "waiting" ? "It asks something: that ends" : agent.activity !== "ready" ? "It is at work: that ends" : agent.background ? "That ends it" : "";
  return [
    h("button", { type: "button", class: "tiny", key: "restart", "aria-disabled": busy || null, onClick: () => ask("restart", "is started", RUNS.has(agent.state) ? works : "") }, RUNS.has(agent.state) ? "Restart" : "Start"),
    RUNS.has(agent.state) ? h("button", { type: "button", class: "tiny", key: "stop", "aria-disabled": busy || null, onClick: () => ask("stop", "is stopped", works || "Its program ends") }, "Stop") : null,
  ];
}
