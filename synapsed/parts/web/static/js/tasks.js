// The tasks of one agent as a conversation: what was asked, what came back, and folded in between what was done for it.

import { h } from "../vendor/preact.mjs";
import { useEffect, useLayoutEffect, useRef, useState } from "../vendor/hooks.mjs";
import { ApiError, agentPath, get, nextOf, post } from "./api.js";
import { past } from "./past.js";
import { may, now, onEvent, toast } from "./store.js";
import { ago } from "./words.js";

/** @param {number} number @param {string} one @param {string} [many] */
const counted = (number, one, many = `${one}s`) => `${number} ${number === 1 ? one : many}`;

/** @typedef {any} Task */

/** What makes nodes of texts is loaded with the first of them. @type {typeof import("./markdown.js")|null} */
let texts = null;
const ready = async () => {
  texts ??= await import("./markdown.js");
};
/** @param {string} text */
const markdown = (text) => texts?.markdown(text);

const PAGE = 20;
/** So many of the newest are drawn at once, which fills a window; the others a few at a time, behind it. */
const FIRST = 3;
const CALLS_MAX = 300;
const OPEN_STATES = new Set(["submitted", "working", "input_required", "auth_required"]);

/** @param {any} part */
const partText = (part) => (part.type === "text" ? part.text : part.type === "data" ? "```json\n" + JSON.stringify(part.data, null, 2) + "\n```" : part.type === "file" ? `📎 ${part.file?.name ?? part.file?.uri ?? "file"}` : "");
/** @param {{parts?: any[]}} whole */
const textOf = (whole) => (whole.parts ?? []).map(partText).join("\n");

/** @param {Task} task @param {any} event @returns {Task|null} the task after it, null where it has to be read again */
export function after(task, event) {
  const { data } = event;
  if (event.event === "taskStatus") {
    if (data.error?.truncated || data.prompt?.truncated) return null;
    return { ...task, status: data.state, error: data.error ?? task.error, prompt: data.prompt ?? null, updated_at: event.time };
  }
  if (event.event !== "taskArtifact") return task;
  const artifact = data.artifact;
  if (artifact.truncated || !Array.isArray(artifact.parts)) return null;
  const place = task.artifacts.findIndex((/** @type {any} */ one) => one.artifact_id === artifact.artifact_id);
  const artifacts = [...task.artifacts];
  if (place < 0) artifacts.push(artifact);
  else if (data.append) artifacts[place] = { ...artifacts[place], parts: joined(artifacts[place].parts, artifact.parts) };
  else artifacts[place] = artifact;
  return { ...task, artifacts };
}

/** Whether it is the end of a task. @param {any} event */
const ends = (event) => event.event === "taskStatus" && !OPEN_STATES.has(event.data.state);

/**
 * A task with what was said in it so far, and the last event that is in it: while it is worked on, what is being said is
 * in the log only.
 * @param {string} agent @param {Task} task @returns {Promise<[Task, number]>}
 */
async function soFar(agent, task) {
  if (!OPEN_STATES.has(task.status)) return [task, 0];
  const events = await past(`${agentPath(agent)}/events?stream=sse&types=taskArtifact&tasks=${task.id}&after=0&until=newest`);
  const told = events.reduce((before, event) => after(before, event) ?? before, { ...task, artifacts: [] });
  const known = new Set(told.artifacts.map((/** @type {any} */ one) => one.artifact_id));
  const others = task.artifacts.filter((/** @type {any} */ one) => !known.has(one.artifact_id));
  return [{ ...told, artifacts: [...others, ...told.artifacts] }, events.at(-1)?.id ?? 0];
}

/** A task that is over and was not changed since is the one that is there, which is not drawn again.
 * @param {Task|undefined} before @param {Task} task @returns {Task} */
const same = (before, task) => (before?.updated_at === task.updated_at && before.status === task.status && !OPEN_STATES.has(task.status) ? before : task);

/** Texts that continue each other are one. @param {any[]} before @param {any[]} more */
function joined(before, more) {
  const parts = [...before];
  for (const part of more) {
    const last = parts.at(-1);
    if (part.type === "text" && last?.type === "text") parts.splice(-1, 1, { ...last, text: last.text + part.text });
    else parts.push(part);
  }
  return parts;
}

/** @param {{agent: string, agentId: string, clock: number}} props */
export function Conversation({ agent, agentId, clock }) {
  const [tasks, setTasks] = useState(/** @type {Task[]|null} */ (null));
  const [problem, setProblem] = useState("");
  const [more, setMore] = useState("");
  /** Until the history has told, no tools are shown. */
  const [used, setUsed] = useState(() => /** @type {(task: Task) => string|null} */ (() => ""));
  /** How many of the oldest are not drawn yet. */
  const [undrawn, setUndrawn] = useState(0);
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const list = useRef(/** @type {Task[]} */ ([]));
  const drawn = useRef(/** @type {Map<string, {task: Task, when: string, newest: boolean, tools: string|null, node: any}>} */ (new Map()));
  const within = useRef(/** @type {HTMLElement|null} */ (null));
  const low = useRef(true);
  const tall = useRef(0);
  const put = (/** @type {Task[]} */ next) => {
    list.current = next;
    setTasks(next);
  };
  useEffect(() => {
    let left = false;
    /** What came of a task while it is read. @type {Map<string, any[]>} */
    const meanwhile = new Map();
    /** @param {string} id @returns {Promise<void>} */
    const read = async (id) => {
      if (meanwhile.has(id)) return;
      meanwhile.set(id, []);
      try {
        const [found, last] = await soFar(agent, await get(`${agentPath(agent)}/tasks/${id}`));
        await ready();
        if (left) return;
        const since = OPEN_STATES.has(found.status) ? meanwhile.get(id)?.filter((event) => event.id > last) ?? [] : [];
        const task = since.reduce((before, event) => after(before, event) ?? before, found);
        const place = list.current.findIndex((one) => one.id === task.id);
        put(place < 0 ? [task, ...list.current] : list.current.map((one) => (one.id === task.id ? task : one)));
        if (since.some(ends)) setTimeout(read, 0, id);
      } catch {
        // It is read with the list when the line is back.
      } finally {
        meanwhile.delete(id);
      }
    };
    /** What is told of while the list is read, which may be older than that. @type {Set<string>} */
    let told = new Set();
    const readAll = async () => {
      told = new Set();
      try {
        const found = await get(`${agentPath(agent)}/tasks?limit=${PAGE}`);
        if (found.length) await ready();
        if (left) return;
        const known = new Map(list.current.map((one) => [one.id, one]));
        setUndrawn(found.some((/** @type {Task} */ one) => known.has(one.id)) ? 0 : Math.max(0, found.length - FIRST));
        put(found.map((/** @type {Task} */ one) => same(known.get(one.id), one)));
        setMore(nextOf(found));
        setProblem("");
        for (const task of found) if (OPEN_STATES.has(task.status) && task.status !== "submitted") told.add(task.id);
        for (const id of told) void read(id);
        if (found.length) void toolsUsed(agent).then((known) => left || setUsed(() => known));
      } catch (error) {
        if (!left) setProblem(error instanceof ApiError ? error.message : "A part of the page could not be loaded.");
      }
    };
    put([]);
    setTasks(null);
    void readAll();
    addEventListener("line-back", readAll);
    const stop = onEvent((event) => {
      if (event.agent !== agentId || !event.task) return;
      if (!["taskStatus", "taskArtifact", "taskDelivered"].includes(event.event)) return;
      told.add(event.task);
      meanwhile.get(event.task)?.push(event);
      const task = list.current.find((one) => one.id === event.task);
      if (!task) {
        void read(event.task);
        return;
      }
      const next = after(task, event);
      if (next === null || (next.status !== task.status && !OPEN_STATES.has(next.status))) void read(task.id);
      if (next !== null && next !== task) put(list.current.map((one) => (one.id === task.id ? next : one)));
    });
    return () => {
      left = true;
      stop();
      removeEventListener("line-back", readAll);
    };
  }, [agent, agentId]);
  // The newest stands at the bottom; who has scrolled up is left alone.
  const newest = tasks?.[0];
  const length = newest ? newest.artifacts.reduce((/** @type {number} */ sum, /** @type {any} */ one) => sum + textOf(one).length, 0) : 0;
  useEffect(() => {
    const at = box.current;
    if (at && at.scrollHeight - at.scrollTop - at.clientHeight < 240) at.scrollTop = at.scrollHeight;
  }, [length, newest?.status]);
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [tasks === null, newest?.id]);
  useEffect(() => {
    if (!within.current) return undefined;
    // Long answers grow for a moment after they are there.
    const grown = new ResizeObserver(() => {
      if (!box.current) return;
      tall.current = box.current.scrollHeight;
      if (low.current) box.current.scrollTop = tall.current;
    });
    grown.observe(within.current);
    return () => grown.disconnect();
  }, [tasks === null]);
  useLayoutEffect(() => (undrawn ? texts?.slice(() => setUndrawn(undrawn - 1)) : undefined), [undrawn]);
  const scrolled = () => {
    const at = box.current;
    // What it has grown by since it was last laid out, nobody has scrolled.
    if (at) low.current = tall.current - at.scrollTop - at.clientHeight < 240;
  };
  const earlier = async () => {
    try {
      const found = await get(more);
      put([...list.current, ...found]);
      setMore(nextOf(found));
    } catch (error) {
      if (error instanceof ApiError) toast(error.message);
    }
  };
  if (problem && !tasks?.length) return h("div", { class: "talk" }, h("p", { class: "problem", role: "alert" }, problem));
  if (!tasks) return h("div", { class: "talk", "aria-busy": "true" }, h("div", { class: "ghost bubble" }));
  // A task that has not changed is the node that it was, which is passed over with all that is in it.
  /** @param {Task} task */
  const view = (task) => {
    const when = ago(task.updated_at, clock);
    const is = task === newest;
    const tools = used(task);
    const before = drawn.current.get(task.id);
    if (before && before.task === task && before.when === when && before.newest === is && before.tools === tools) return before.node;
    const node = h(TaskView, { key: task.id, task, agent, when, newest: is, tools });
    drawn.current.set(task.id, { task, when, newest: is, tools, node });
    return node;
  };
  const shown = tasks.slice(0, tasks.length - undrawn).reverse();
  // Instructions are never first; if there is nothing else, their order does not matter.
  shown.unshift(...shown.splice(shown.findIndex((task) => senderOf(task) !== "synapse-system"), 1));
  return h("div", { class: "talk", ref: box, tabIndex: 0, role: "log", "aria-label": `Conversation with ${agent}`, "aria-live": "off", onScroll: scrolled }, h("div", { ref: within },
    h("h2", { class: "unseen" }, "Conversation"),
    more && !undrawn ? h("button", { type: "button", class: "quiet earlier", onClick: earlier }, "Earlier") : null,
    tasks.length ? null : h("p", { class: "empty" }, "Nothing was said yet."),
    shown.map(view)));
}

/** Its own instructions (synapsed/agents/briefing.py) are sent by "synapse-system". @param {Task} task */
const senderOf = (task) => task.metadata?.sender?.sender_id ?? "";

/** @param {Map<string, number>} names */
const listed = (names) => [...names].map(([name, count]) => (count > 1 ? `${name} ×${count}` : name)).join(", ");
/** @param {Map<string, number>} names @param {string} name */
const count = (names, name) => names.set(name, (names.get(name) ?? 0) + 1);

/**
 * Which tools were used for a task, as the history has it: their names; "": none; null: that is not known.
 * @param {string} agent @returns {Promise<(task: Task) => string|null>}
 */
async function toolsUsed(agent) {
  try {
    const { items, next, complete } = await get(`/control/history?kind=tool&limit=200&agent=${encodeURIComponent(agent)}`);
    /** @type {Map<string, Map<string, number>>} */
    const tools = new Map();
    for (const item of items) if (item.task) tools.set(item.task, count(tools.get(item.task) ?? new Map(), item.tool));
    const since = next ? Date.parse(items.at(-1)?.time ?? "") : 0; // before that there are more
    return (task) => {
      const names = tools.get(task.id);
      if (names) return listed(names);
      return complete && Date.parse(task.created_at) > since ? "" : null;
    };
  } catch {
    return () => null; // there is no history here, or not for this device
  }
}

/** @param {{task: Task, agent: string, when: string, newest: boolean, tools: string|null, key?: string}} props */
function TaskView({ task, agent, when, newest, tools }) {
  const answer = task.artifacts.find((/** @type {any} */ one) => one.artifact_id === "answer");
  const steps = task.artifacts.filter((/** @type {any} */ one) => one.name === "progress");
  const others = task.artifacts.filter((/** @type {any} */ one) => one !== answer && one.name !== "progress" && !/^answer\.\d+$/.test(one.artifact_id));
  const open = OPEN_STATES.has(task.status);
  const sender = senderOf(task);
  const stop = async () => {
    try {
      await post(`${agentPath(agent)}/tasks/${task.id}/cancel`);
    } catch (error) {
      if (error instanceof ApiError) toast(error.message);
    }
  };
  const said = textOf(task.message);
  const shown = answer && texts ? h(texts.Answer, { text: textOf(answer), newest }) : null;
  if (sender === "synapse-system") {
    return h("article", { class: "task told", "data-task": task.id }, h("details", { class: "steps" },
      h("summary", null, `Instructions were sent · ${task.status.replaceAll("_", " ")} · ${when}`),
      h("div", { class: "step said", dir: "auto" }, said), shown));
  }
  return h("article", { class: `task t-${task.status}`, "data-task": task.id },
    h("div", { class: sender ? "bubble asked other" : "bubble asked", dir: "auto" },
      sender ? h("span", { class: "from" }, sender) : null,
      h("div", { class: "said" }, said)),
    steps.length ? h("details", { class: "steps" }, h("summary", null, `${counted(steps.length, "note")} on the way`), steps.map((/** @type {any} */ step) => h("div", { class: "step md" }, markdown(textOf(step))))) : null,
    h(Calls, { agent, task: task.id, open, begun: task.status !== "submitted", tools }),
    shown,
    others.map((/** @type {any} */ one) => h("details", { class: "steps", key: one.artifact_id }, h("summary", null, one.name || one.type), h("div", { class: "md" }, markdown(textOf(one))))),
    h("footer", null,
      h("span", { class: `state s-${task.status}` }, task.status.replaceAll("_", " ")),
      task.error ? h("span", { class: "problem" }, task.error.message || task.error.code) : null,
      answer && task.truncated ? h("span", { class: "quiet", title: "Its beginning had left the screen that it was read off" }, typeof task.missing_lines === "number" ? `${counted(task.missing_lines, "line is", "lines are")} missing at its beginning` : "its beginning is missing") : null,
      answer && task.exact === false && task.status === "completed" ? h("span", { class: "quiet", title: "Read off the screen: it may not be exact" }, "off the screen") : null,
      h("time", { class: "when", dateTime: task.updated_at }, when),
      answer && texts && !open ? h(texts.Copy, { text: textOf(answer), label: "Copy answer" }) : null,
      open && may("answer") ? h("button", { type: "button", class: "tiny", onClick: stop }, "Cancel") : null));
}

/** The tool calls of a task: asked for when they are opened, and followed while the task is worked on.
 * @param {{agent: string, task: string, open: boolean, begun: boolean, tools: string|null}} props */
function Calls({ agent, task, open, begun, tools }) {
  const [calls, setCalls] = useState(/** @type {any[]|null} */ (null));
  const [shown, setShown] = useState(false);
  const [Call, setCall] = useState(/** @type {any} */ (null));
  const [seen, setSeen] = useState(() => merge([], now().events.filter((event) => event.task === task && event.event === "toolExecution")));
  useEffect(() => onEvent((event) => {
    if (event.task === task && event.event === "toolExecution") {
      setSeen((before) => merge(before, [event]));
      setCalls((before) => before && merge(before, [event]));
    }
  }), [task]);
  const toggle = async (/** @type {any} */ event) => {
    setShown(event.target.open);
    if (!event.target.open || calls) return;
    import("./call.js").then((module) => setCall(() => module.Call), () => toast("A part of the page could not be loaded."));
    try {
      setCalls(merge([], await past(`${agentPath(agent)}/events?stream=sse&types=toolExecution&tasks=${task}&after=0&until=newest`)));
    } catch {
      setCalls(seen);
    }
  };
  if (!seen.length && (!begun || tools === "")) return null;
  const names = listed(seen.reduce((names, call) => count(names, call.tool_name), new Map()));
  const last = seen.at(-1);
  const line = open && last && last.status === "started" ? `${last.tool_name} ${brief(last.input)}` : "";
  return h("details", { class: "steps calls", onToggle: toggle },
    h("summary", null, "Tool calls", seen.length ? ` (${seen.length})` : "", h("span", { class: "quiet" }, [line, tools && tools.length > names.length ? tools : names].filter(Boolean).map((text) => ` · ${text}`))),
    shown ? (calls && Call ? (calls.length ? calls.map((call) => h(Call, { call, key: call.call_id ?? call.id })) : h("p", { class: "quiet" }, "None is known.")) : h("p", { class: "quiet" }, "…")) : null);
}

/** @param {any[]} calls @param {any[]} events */
function merge(calls, events) {
  const all = [...calls];
  for (const { data, id } of events) {
    const place = data.call_id ? all.findIndex((one) => one.call_id === data.call_id) : -1;
    if (place < 0) all.push({ ...data, id });
    else all[place] = { ...all[place], ...data, input: data.input ?? all[place].input };
  }
  return all.slice(-CALLS_MAX);
}

/** What a call is about, in a line. @param {any} input */
export function brief(input) {
  if (!input || typeof input !== "object") return "";
  const value = input.command ?? input.file_path ?? input.path ?? input.pattern ?? input.query ?? input.url ?? Object.values(input)[0];
  return typeof value === "string" ? value.split("\n")[0]?.slice(0, 120) ?? "" : "";
}
