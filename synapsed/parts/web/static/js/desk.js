// The desk: the list at the left, what was chosen at the right, keys for everything.

import { h } from "../vendor/preact.mjs";
import { useState } from "../vendor/hooks.mjs";
import { Agents } from "./agents.js";
import { Inbox } from "./inbox.js";
import { Later, Line, Nav, place, useClock } from "./main.js";
import { useStore } from "./store.js";

/** What keys do is loaded when the first one is pressed, which is acted on then. @type {Promise<any>|null} */
let keys = null;
document.onkeydown = (event) => {
  if (/** @type {HTMLElement} */ (event.target).closest?.("[data-keys=own]")) return; // a terminal has all of them
  keys ??= import("./keys.js");
  void keys.then((keys) => keys.onKey(event), () => (keys = null));
};

export default function Desk() {
  const route = useStore((state) => state.route);
  const clock = useClock();
  const [filter, setFilter] = useState("");
  const { view, name } = place(route);
  return h("div", { class: "desk" },
    h("aside", { class: "left" },
      h("button", { type: "button", class: "skip", onClick: () => document.querySelector("main")?.focus() }, "Go past the list"),
      h("header", { class: "top" }, h("h1", null, h("a", { href: "#/" }, "synapsed"))),
      h(Nav, null),
      h("input", { type: "search", class: "find", id: "find", placeholder: "Find an agent  /", "aria-label": "Find an agent", value: filter, onInput: (/** @type {any} */ event) => setFilter(event.target.value) }),
      h(Agents, { clock, chosen: view === "agent" ? name : "", foldable: false, filter })),
    h("div", { class: "right" },
      h(Line, null),
      view === "home"
        ? h("main", { class: "home", tabIndex: -1 }, h("h2", null, "Inbox"), h(Inbox, { clock }))
        : h("main", { class: "view", tabIndex: -1 }, h(Later, { view, name, clock, desk: true }))));
}

