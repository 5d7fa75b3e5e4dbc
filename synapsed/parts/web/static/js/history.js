// What was said and done, searched over all agents, also those that are gone.

import { h } from "../vendor/preact.mjs";
import { useEffect, useState } from "../vendor/hooks.mjs";
import { ApiError, get } from "./api.js";
import { useStore } from "./store.js";
import { ago } from "./words.js";

const PAUSE_MS = 250;
const PAGE = 50;

/** @param {{desk: boolean, clock: number}} props */
export default function History({ desk, clock }) {
  const agents = useStore((state) => state.agents);
  const [words, setWords] = useState("");
  const [kind, setKind] = useState("");
  const [told, setTold] = useState(/** @type {{items: any[], next: any}|null} */ (null));
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  /** @param {any} [before] */
  const address = (before) => {
    const query = new URLSearchParams({ limit: String(PAGE) });
    if (words.trim()) query.set("q", words.trim());
    if (kind) query.set("kind", kind);
    if (before) query.set("before", String(before));
    return `/control/history?${query}`;
  };
  useEffect(() => {
    let left = false;
    setBusy(true);
    const timer = setTimeout(() => {
      get(address()).then((found) => {
        if (left) return;
        setTold(found);
        setProblem("");
        setBusy(false);
      }, (error) => {
        if (left) return;
        setProblem(error instanceof ApiError ? error.message : String(error));
        setBusy(false);
      });
    }, words ? PAUSE_MS : 0);
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [words, kind]);
  const more = async () => {
    if (!told?.next || busy) return;
    setBusy(true);
    try {
      const found = await get(address(told.next));
      setTold({ items: [...told.items, ...found.items], next: found.next });
    } catch (error) {
      if (error instanceof ApiError) setProblem(error.message);
    }
    setBusy(false);
  };
  const names = new Map((agents ?? []).map((one) => [one.id, one.name]));
  const named = (/** @type {string|null} */ id) => (id ? names.get(id) ?? id : "you");
  return h("div", { class: "list-view" },
    h("header", { class: "bar" },
      desk ? null : h("a", { href: "#/", class: "back", "aria-label": "Back" }, "‹"),
      h(desk ? "h2" : "h1", null, "History"),
      h("div", { class: "filters" },
        h("input", { type: "search", id: "history-words", placeholder: "Words that were said", "aria-label": "Words", value: words, onInput: (/** @type {any} */ event) => setWords(event.target.value) }),
        h("select", { "aria-label": "Kind", value: kind, onChange: (/** @type {any} */ event) => setKind(event.target.value) }, h("option", { value: "" }, "everything"), [["message", "messages"], ["answer", "answers"], ["tool", "tool calls"]].map(([value, label]) => h("option", { value }, label))))),
    problem ? h("p", { class: "problem", role: "alert" }, problem) : null,
    told && !told.items.length && !busy ? h("p", { class: "empty" }, words ? "Nothing was said or done with these words." : "Nothing was said yet.") : null,
    h("ol", { class: "found", "aria-busy": String(busy), tabIndex: 0, "aria-label": "What was found" }, (told?.items ?? []).map((item) => h("li", { key: `${item.id}-${item.kind}` },
      h("header", null,
        h("span", { class: "name" }, item.kind === "message" ? `${named(item.by)} → ${named(item.to ?? item.agent)}` : named(item.agent)),
        h("span", { class: "kind" }, item.tool ?? item.kind),
        h("time", { class: "when", dateTime: item.time, title: item.time }, ago(item.time, clock))),
      h("p", { class: "says", dir: "auto" }, item.snippet)))),
    told?.next ? h("button", { type: "button", class: "quiet earlier", "aria-disabled": busy || null, onClick: more }, "Earlier") : null);
}
