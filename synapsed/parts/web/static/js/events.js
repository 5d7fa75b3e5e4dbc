// What happens, newest first: the last that there were and what comes, by kind, agent and words.

import { h } from "../vendor/preact.mjs";
import { useEffect, useState } from "../vendor/hooks.mjs";
import { ApiError, get } from "./api.js";
import { past } from "./past.js";
import { now, useStore } from "./store.js";

const EARLIER = 300;
const SHOWN = 300;

/** @type {Record<string, string[]>} */
const GROUPS = {
  "all": [],
  "questions": ["inputRequired", "inputAnswered", "attention", "permissionDecided"],
  "tasks": ["taskStatus", "taskDelivered", "taskArtifact", "turnSeen"],
  "tools": ["toolExecution"],
  "agents": ["activity", "agentState", "agentAlert", "agentReported", "agentTransition"],
  "rules": ["ruleFired", "schedule"],
};

/** What an event says, in a line. @param {import("./store.js").SingleEvent} event @returns {string} */
export function line(event) {
  switch (event.event) {
    case "activity": return `${event.data.activity} · ${event.data.evidence}`;
    case "agentState": return [event.data.state, event.data.reason].filter(Boolean).join(" · ");
    case "agentAlert": return `${event.data.code}: ${event.data.message}`;
    case "agentReported": return `${event.data.kind}: ${text(event.data.message)}`;
    case "agentTransition": return `${event.data.from_agent ?? "a person"} → ${event.data.to_agent}${event.data.reason ? ` · ${event.data.reason}` : ""}`;
    case "attention": return `${event.data.kind} ${event.data.state} · ${event.data.question}`;
    case "inputRequired": return text("prompt" in event.data.prompt ? event.data.prompt.prompt : event.data.prompt);
    case "inputAnswered": return `${event.data.answer === null ? "(hidden)" : text(event.data.answer)}${event.data.who || event.data.by ? ` · by ${event.data.who ?? event.data.by}` : ""}`;
    case "permissionDecided": return `${event.data.verdict} ${event.data.tool}${event.data.rule ? ` · ${event.data.rule}` : ""}`;
    case "ruleFired": return `${event.data.rule}: ${event.data.action} ${event.data.outcome} ${event.data.problem || event.data.text}`;
    case "schedule": return `${event.data.schedule}: ${event.data.outcome} ${event.data.problem ?? ""}`;
    case "taskStatus": return [event.data.state, event.data.reason, message(event.data.error)].filter(Boolean).join(" · ");
    case "plan": return Array.isArray(event.data.steps) ? event.data.steps.map((step) => `${step.status === "completed" ? "✓ " : ""}${step.text}`).join(" · ") : "";
    case "diff": return text(event.data.diff);
    case "rateLimits": return event.data.plan ?? "";
    case "taskArtifact": return "parts" in event.data.artifact ? `${event.data.artifact.name} ${text(event.data.artifact.parts.map((part) => ("text" in part ? part.text : "")).join(" "))}` : text(event.data.artifact);
    case "toolExecution": return [`${event.data.tool_name} ${event.data.status}`, text(event.data.error), command(event.data.input)].filter(Boolean).join(" · ");
    case "turnSeen": return text(event.data.text);
    case "daemon": return `${event.data.state} · ${event.data.version}`;
    case "screen": return "came to rest";
    case "usage": return `${event.data.model ?? ""} in ${event.data.input_tokens ?? "–"} out ${event.data.output_tokens ?? "–"}`;
    default: return "";
  }
}

/** @param {any} error */
const message = (error) => (typeof error?.message === "string" ? error.message : "");
/** @param {any} input */
const command = (input) => (typeof input?.command === "string" ? input.command : "");
/** @param {any} value */
const text = (value) => (typeof value === "string" ? value.slice(0, 400) : value?.truncated ? `(${value.size} characters)` : "");

/** @param {{desk: boolean}} props */
export default function Events({ desk }) {
  const live = useStore((state) => state.events);
  const agents = useStore((state) => state.agents);
  const [before, setBefore] = useState(/** @type {any[]|null} */ (null));
  const [problem, setProblem] = useState("");
  const [group, setGroup] = useState("all");
  const [agent, setAgent] = useState("");
  const [words, setWords] = useState("");
  useEffect(() => {
    let left = false;
    const read = async () => {
      try {
        // There is no event 0: the refusal says which is the last.
        const last = await get("/events/0").then(() => 0, (error) => (error instanceof ApiError ? Number(error.details.last_id ?? 0) : 0));
        const found = last ? await past(`/events?stream=sse&until=newest&after=${Math.max(0, last - EARLIER)}`) : [];
        if (!left) {
          setBefore(found);
          setProblem("");
        }
      } catch (error) {
        if (!left) {
          setBefore([]);
          setProblem(error instanceof Error ? error.message : String(error));
        }
      }
    };
    // Once the stream is open: what happened before that is in what is read, what happens after it comes.
    if (now().line === "live") void read();
    addEventListener("line-back", read);
    return () => {
      left = true;
      removeEventListener("line-back", read);
    };
  }, []);
  const names = new Map((agents ?? []).map((one) => [one.id, one.name]));
  const types = new Set(GROUPS[group]);
  const wanted = words.toLowerCase();
  const newest = before?.at(-1)?.id ?? 0;
  const all = [...(before ?? []), ...live.filter((event) => (event.id ?? 0) > newest)];
  const shown = all.filter((event) => (!types.size || types.has(event.event)) && (!agent || event.agent === agent) && (!wanted || `${event.event} ${names.get(event.agent) ?? ""} ${line(event)}`.toLowerCase().includes(wanted))).slice(-SHOWN).reverse();
  return h("div", { class: "list-view" },
    h("header", { class: "bar" },
      desk ? null : h("a", { href: "#/", class: "back", "aria-label": "Back" }, "‹"),
      h(desk ? "h2" : "h1", null, "Events"),
      h("div", { class: "filters" },
        h("select", { "aria-label": "Kind", value: group, onChange: (/** @type {any} */ event) => setGroup(event.target.value) }, Object.keys(GROUPS).map((one) => h("option", { value: one }, one))),
        h("select", { "aria-label": "Agent", value: agent, onChange: (/** @type {any} */ event) => setAgent(event.target.value) }, h("option", { value: "" }, "every agent"), (agents ?? []).map((one) => h("option", { value: one.id }, one.name))),
        h("input", { type: "search", placeholder: "Words", "aria-label": "Words", value: words, onInput: (/** @type {any} */ event) => setWords(event.target.value) }))),
    problem ? h("p", { class: "problem", role: "alert" }, problem) : null,
    before === null ? h("p", { class: "empty", "aria-busy": "true" }) : null,
    before !== null && !shown.length ? h("p", { class: "empty" }, all.length ? "Nothing of that kind among the last events." : "Nothing has happened yet.") : null,
    h("ol", { class: "events", tabIndex: 0, "aria-label": "Events" }, shown.map((event) => row(event, names.get(event.agent) ?? event.agent ?? ""))));
}

/** Rows as they were drawn: one that is the same node as before is passed over. @type {WeakMap<object, {name: string, node: any}>} */
const drawn = new WeakMap();

/** @param {any} event @param {string} name */
function row(event, name) {
  const before = drawn.get(event);
  if (before?.name === name) return before.node;
  const says = line(event);
  const node = h("li", { key: event.id },
    h("time", { dateTime: event.time }, clockOf(event.time)),
    h("span", { class: "name" }, name),
    h("span", { class: `type e-${event.event}` }, event.event),
    h("span", { class: "says", dir: "auto", title: says }, says));
  drawn.set(event, { name, node });
  return node;
}

const CLOCK = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const DAY = new Intl.DateTimeFormat([], { month: "short", day: "numeric" });

/** @param {string} time */
function clockOf(time) {
  const date = new Date(time);
  const clock = CLOCK.format(date);
  return date.toDateString() === new Date().toDateString() ? clock : `${DAY.format(date)} ${clock}`;
}
