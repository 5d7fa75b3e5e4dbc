// Several agents side by side: their screens, or their terminals.

import { h } from "../vendor/preact.mjs";
import { useState } from "../vendor/hooks.mjs";
import { useAgents } from "./agents.js";
import { Screen } from "./screen.js";
import { may, toast } from "./store.js";

/** How many there may be: each is a connection of its own. */
const MOST = 6;

/** @param {{name: string, desk: boolean}} props */
export default function Side({ name, desk }) {
  const names = name.split(",").filter(Boolean).slice(0, MOST);
  const { agents } = useAgents();
  const [typing, setTyping] = useState("");
  const [Terminal, setTerminal] = useState(/** @type {any} */ (null));
  const go = (/** @type {string[]} */ next) => {
    location.hash = `#/side/${encodeURIComponent(next.join(","))}`;
  };
  const type = async (/** @type {string} */ one) => {
    try {
      if (!Terminal) {
        const module = await import("./terminal.js");
        setTerminal(() => module.Terminal);
      }
      setTyping(typing === one ? "" : one);
    } catch {
      toast("The terminal could not be loaded.");
    }
  };
  const others = (agents ?? []).filter((agent) => !names.includes(agent.name));
  return h("div", { class: "side" },
    h("header", { class: "bar" }, desk ? null : h("a", { href: "#/", class: "back", "aria-label": "Back" }, "‹"), h(desk ? "h2" : "h1", null, "Side by side"),
      names.length < MOST && others.length ? h("select", { "aria-label": "Add an agent", value: "", onChange: (/** @type {any} */ event) => { if (event.target.value) go([...names, event.target.value]); } }, h("option", { value: "" }, "Add an agent…"), others.map((agent) => h("option", { value: agent.name }, agent.name))) : null),
    names.length ? null : h("p", { class: "empty" }, "Add an agent above."),
    h("div", { class: "panes" }, names.map((one) => h("section", { class: "pane", key: one },
      h("header", null, h("a", { href: `#/agent/${encodeURIComponent(one)}` }, one),
        may("type") ? h("button", { type: "button", class: "tiny", "aria-pressed": String(typing === one), onClick: () => type(one) }, typing === one ? "Look only" : "Terminal") : null,
        h("button", { type: "button", class: "tiny", "aria-label": `Take ${one} away`, onClick: () => go(names.filter((other) => other !== one)) }, "×")),
      typing === one && Terminal ? h(Terminal, { agent: one }) : h(Screen, { agent: one, desk })))));
}
