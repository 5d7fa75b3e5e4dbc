// One agent: its screen, its conversation, what it asks, and a box to write to it.

import { h } from "../vendor/preact.mjs";
import { useEffect, useLayoutEffect, useState } from "../vendor/hooks.mjs";
import { ApiError, agentPath, post } from "./api.js";
import { doing, saying } from "./agents.js";
import { Card } from "./inbox.js";
import { Screen } from "./screen.js";
import { look } from "./stood.js";
import { may, toast, useStore } from "./store.js";
import { Where, isAsked } from "./words.js";

/** What is written, and the box to write: loaded beside the screen, which comes first. @type {any} */
let talking = null;
const load = () => Promise.all([import("./tasks.js"), import("./send.js"), may("manage") ? import("./manage.js") : {}]).then((modules) => {
  talking = Object.assign({}, ...modules);
});

/** @param {{name: string, clock: number, desk: boolean}} props */
export default function AgentView({ name, clock, desk }) {
  const agent = useStore((state) => state.agents?.find((one) => one.name === name || one.id === name) ?? null);
  const known = useStore((state) => state.agents !== null);
  const inbox = useStore((state) => state.inbox);
  const given = useStore((state) => state.given);
  const [tab, setTab] = useState("screen");
  const [typing, setTyping] = useState(false);
  const [Terminal, setTerminal] = useState(/** @type {any} */ (null));
  useEffect(() => {
    if (typing && !Terminal) import("./terminal.js").then((module) => setTerminal(() => module.Terminal), () => { toast("The terminal could not be loaded."); setTyping(false); });
  }, [typing]);
  const [Talk, setTalk] = useState(talking);
  useEffect(() => {
    if (!Talk) load().then(() => setTalk(talking), () => toast("A part of the page could not be loaded."));
  }, []);
  useEffect(() => setTyping(false), [name]);
  useLayoutEffect(look);
  if (!agent) return h("div", { class: "agent" }, h("header", { class: "bar" }, desk ? null : h("a", { href: "#/", class: "back", "aria-label": "Back" }, "‹"), h(desk ? "h2" : "h1", null, name)), h("p", { class: "empty", "aria-busy": String(!known) }, known ? "There is no such agent (any more)." : ""));
  const asks = (inbox ?? []).filter((item) => item.agent_id === agent.id && isAsked(item));
  const interrupt = async () => {
    try {
      const done = await post(`/control${agentPath(agent.name)}/interrupt`);
      toast(done.interrupted ? `${agent.name} was interrupted.` : `${agent.name} has nothing to stop.`);
    } catch (error) {
      if (error instanceof ApiError) toast(error.message);
    }
  };
  /** @param {string} which @param {string} label */
  const tabButton = (which, label) => h("button", { type: "button", role: "tab", "aria-selected": String(tab === which), onClick: () => setTab(which) }, label);
  /** One of two, by the arrows. @param {KeyboardEvent} event */
  const turn = (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const at = /** @type {HTMLElement} */ (event.target);
    const other = /** @type {HTMLElement|null} */ (at.nextElementSibling ?? at.previousElementSibling);
    other?.focus();
    other?.click();
  };
  const bar = h("header", { class: "bar" },
    desk ? null : h("a", { href: "#/", class: "back", "aria-label": "Back" }, "‹"),
    h("span", { class: `dot d-${asks.length ? "waiting" : doing(agent)}`, role: "img", "aria-label": doing(agent) }),
    h(desk ? "h2" : "h1", null, agent.name),
    h("span", { class: "says", dir: "auto" }, saying(agent, asks.length > 0)),
    desk ? h("span", { class: "kind" }, agent.type) : null,
    desk ? h(Where, { cwd: agent.cwd }) : null,
    h("span", { class: "acts" },
      desk && may("type") ? h("button", { type: "button", class: "tiny", id: "terminal", "aria-pressed": String(typing), onClick: () => setTyping(!typing) }, typing ? "Look only" : "Terminal") : null,
      desk ? h("a", { class: "tiny button", href: `#/side/${encodeURIComponent(agent.name)}`, title: "Several side by side" }, "Side by side") : null,
      may("answer") && doing(agent) === "busy" ? h("button", { type: "button", class: "tiny", onClick: interrupt }, "Interrupt") : null,
      Talk?.Manage ? h(Talk.Manage, { agent }) : null));
  const question = asks.length ? h("ul", { class: "cards here" }, asks.map((item) => h(Card, { key: item.id, item, given: given.get(item.id) ?? null, clock, chosen: false }))) : null;
  const screen = typing && Terminal ? h(Terminal, { agent: agent.name, key: agent.id }) : h(Screen, { agent: agent.name, desk, key: agent.id });
  const talk = !Talk ? h("div", { class: "talk", "aria-busy": "true" }) : h(Talk.Conversation, { agent: agent.name, agentId: agent.id, clock, key: agent.id });
  if (desk) return h("div", { class: "agent wide" }, bar, h("div", { class: "halves" }, h("div", { class: "half" }, screen, typing || !Talk ? null : h(Talk.Keys, { agent: agent.name })), h("div", { class: "half" }, question, talk, Talk ? h(Talk.Send, { agent: agent.name, desk, key: agent.id }) : null)));
  return h("div", { class: "agent" }, bar, question,
    h("div", { class: "tabs", role: "tablist", onKeyDown: turn }, tabButton("screen", "Screen"), tabButton("talk", "Conversation")),
    tab === "screen" ? screen : talk,
    tab === "screen" && Talk ? h(Talk.Keys, { agent: agent.name }) : null,
    Talk ? h(Talk.Send, { agent: agent.name, desk, key: agent.id }) : null);
}
