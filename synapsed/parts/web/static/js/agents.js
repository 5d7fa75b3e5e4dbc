// The agents: who needs a person first, then who works, then who is at rest, folded where there are many.

import { h } from "../vendor/preact.mjs";
import { useLayoutEffect, useRef, useState } from "../vendor/hooks.mjs";
import { may, useStore } from "./store.js";
import { visible } from "./visible.js";
import { HELD, Where, ago, folder, project } from "./words.js";

/** @typedef {import("./store.js").Agent} Agent */

/** From so many on, agents at rest are folded on the phone. */
const FOLD_FROM = 4;

const UNREAD_SCREEN = "unknown screen";

/** Who stands first, as in `synapsectl list`; other words come last. */
const ORDER = ["waiting", "unknown", "failed", "backoff", "limited", "starting", "busy", "ready", "parked"];
/** From here on agents are at rest. */
const REST = ORDER.indexOf("ready");

/** @param {Agent} agent */
export function doing(agent) {
  if (agent.state !== "running") return agent.state;
  return agent.held === UNREAD_SCREEN ? "unknown" : agent.activity;
}

/** @param {Agent} agent @param {Set<string>} waiting */
export function rank(agent, waiting) {
  const place = waiting.has(agent.id) ? 0 : ORDER.indexOf(doing(agent));
  return place < 0 ? ORDER.length : place;
}

/** What it does, and how much it runs beside that, in words. @param {Agent} agent @param {boolean} waits */
export function saying(agent, waits) {
  const does = matter(agent, waits);
  return agent.background ? `${does} · ${agent.background} in the background` : does;
}

/** @param {Agent} agent @param {boolean} waits */
function matter(agent, waits) {
  const does = doing(agent);
  if (waits) return agent.asks || "waiting";
  if (does === "busy") return agent.doing || agent.evidence || does;
  if (does === "unknown") return agent.evidence || does;
  const queue = agent.queue ? `${agent.queue} wait${agent.queue === 1 ? "s" : ""}` : "";
  const held = agent.held && agent.held !== does ? HELD[agent.held] ?? agent.held : "";
  return [does, queue, held].filter(Boolean).join(" · ");
}

/** @returns {{agents: Agent[]|null, waiting: Set<string>}} */
export function useAgents() {
  const agents = useStore((state) => state.agents);
  const inbox = useStore((state) => state.inbox);
  const waiting = new Set((inbox ?? []).filter((item) => item.prompt_id || item.kind === "unreadable").map((item) => item.agent_id));
  const sorted = agents ? [...agents].sort((one, other) => rank(one, waiting) - rank(other, waiting) || one.name.localeCompare(other.name)) : null;
  return { agents: sorted, waiting };
}

/** @param {{clock: number, chosen?: string, foldable?: boolean, filter?: string}} props */
export function Agents({ clock, chosen = "", foldable = true, filter = "" }) {
  const { agents, waiting } = useAgents();
  const [opened, setOpen] = useState(/** @type {boolean|null} */ (null));
  const drawn = useRef(/** @type {Map<string, {said: string, node: any}>} */ (new Map()));
  const held = document.activeElement;
  useLayoutEffect(() => {
    // A row that moved has lost the focus, where a browser cannot move what has it.
    if (held instanceof HTMLElement && held !== document.body && held.isConnected && document.activeElement === document.body) held.focus({ preventScroll: true });
  });
  if (!agents) return h("ul", { class: "agents", "aria-busy": "true" }, [1, 2, 3].map((n) => h("li", { class: "ghost row", key: n })));
  const wanted = filter.toLowerCase();
  const shown = wanted ? agents.filter((one) => `${one.name} ${one.type} ${one.cwd}`.toLowerCase().includes(wanted)) : agents;
  const idle = shown.filter((one) => rank(one, waiting) >= REST);
  const fold = foldable && !wanted && idle.length >= FOLD_FROM;
  const front = fold ? shown.filter((one) => rank(one, waiting) < REST) : shown;
  const open = opened ?? !front.length; // where all are at rest, nothing is gained by folding them
  /** @param {Agent} agent */
  const row = (agent) => {
    const waits = waiting.has(agent.id);
    const is = agent.name === chosen;
    const when = ago(agent.since, clock);
    const said = [agent.name, agent.type, agent.cwd, waits, is, when, doing(agent), saying(agent, waits)].join("\n");
    const before = drawn.current.get(agent.id);
    if (before?.said === said) return before.node; // which is passed over
    const node = h(Row, { key: agent.id, agent, waits, chosen: is, when });
    drawn.current.set(agent.id, { said, node });
    return node;
  };
  /** @type {Map<string, Agent[]>} */
  const projects = new Map();
  for (const one of shown) projects.set(project(one.cwd), [...(projects.get(project(one.cwd)) ?? []), one]);
  const apart = projects.size > 1 && projects.size < shown.length; // else each would stand alone, or all together
  /** In the order in which the first of each stands. @param {Agent[]} some */
  const rows = (some) => (apart
    ? [...projects].flatMap(([path, all]) => {
      const here = all.filter((one) => some.includes(one));
      return here.length ? [h("li", { class: "project", key: path, title: path }, h("bdi", { dir: "ltr" }, visible(folder(path)))), ...here.map(row)] : [];
    })
    : some.map(row));
  return h("nav", { class: apart ? "agents grouped" : "agents", "aria-label": "Agents", tabIndex: -1 },
    h("ul", null, rows(front)),
    fold ? h("button", { type: "button", class: "fold", "aria-expanded": String(open), onClick: () => setOpen(!open) }, `${open ? "▾" : "▸"} ${idle.length} at rest`) : null,
    fold && open ? h("ul", null, rows(idle)) : null,
    !wanted && may("manage") ? h("a", { class: "fold", href: "#/start" }, "Start an agent…") : null,
    wanted && !shown.length ? h("p", { class: "empty" }, "No agent is called that.") : null);
}

/** @param {{agent: Agent, waits: boolean, chosen: boolean, when: string, key?: string}} props */
function Row({ agent, waits, chosen, when }) {
  const does = waits ? "waiting" : doing(agent);
  return h("li", { class: chosen ? "row chosen" : "row" },
    h("a", { href: `#/agent/${encodeURIComponent(agent.name)}`, "aria-current": chosen ? "page" : null },
      h("span", { class: `dot d-${does}`, role: "img", "aria-label": does }),
      h("span", { class: "name" }, agent.name),
      h("span", { class: "type" }, agent.type === agent.name ? "" : agent.type),
      h("time", { class: "when", dateTime: agent.since }, when),
      h("span", { class: "second" },
        h("span", { class: "says", dir: "auto" }, saying(agent, waits)),
        h(Where, { cwd: agent.cwd }))));
}
