// What waits for a person, and the answers. A tap is taken at once and told as it is: sending, sent, not taken, or
// answered by somebody else. Each answer has a key and the id of its prompt, so that it counts once however often it
// has to be sent.

import { h } from "../vendor/preact.mjs";
import { useEffect, useLayoutEffect, useRef, useState } from "../vendor/hooks.mjs";
import { ApiError, agentPath, newKey, post } from "./api.js";
import { counts, look, onHeldKey, useFresh } from "./stood.js";
import { may, now, onEvent, put, useStore } from "./store.js";
import { visible } from "./visible.js";
import { KINDS, Where, ago, choice, composes, isAsked, takesWords, whoAnswered } from "./words.js";

/** @typedef {import("./words.js").Item} Item */
/** @typedef {import("./store.js").Given} Given */

/** How long what became of an answer is shown after its question is gone. */
const SHOWN_MS = 6000;
const RETRY_MS = 1500;
const RETRY_LONGEST_MS = 15_000;

/** @param {Item} item @param {Omit<Given, "item">|null} given */
export function note(item, given) {
  const all = new Map(now().given);
  if (given) all.set(item.id, { ...given, item });
  else all.delete(item.id);
  put({ given: all });
  if (given?.until) setTimeout(() => forget(item.id, given.until), given.until - Date.now() + 50);
}

/** @param {string} id @param {number} until */
function forget(id, until) {
  if (now().given.get(id)?.until !== until) return;
  const all = new Map(now().given);
  all.delete(id);
  put({ given: all });
}

/**
 * Give an answer, and go on trying while the line is bad and the question stands.
 * @param {Item} item @param {string} text @param {string} label
 */
export async function answer(item, text, label) {
  const before = now().given.get(item.id);
  if (before && before.state !== "refused") return;
  const key = newKey();
  const [path, more] = way(item);
  let wait = RETRY_MS;
  let unsure = false;
  note(item, { state: "sending", label, note: "", until: 0 });
  for (;;) {
    try {
      await post(path, { input: text, prompt_id: item.prompt_id, ...more }, key);
      note(item, { state: "done", label, note: "taken", until: Date.now() + SHOWN_MS });
      return;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.unsure) {
        unsure = true;
        note(item, { state: "retrying", label, note: "bad line: it is sent again", until: 0 });
        await pause(wait);
        wait = Math.min(wait * 2, RETRY_LONGEST_MS);
        continue;
      }
      if (["PROMPT_CHANGED", "NOT_WAITING", "TASK_NOT_FOUND", "UNKNOWN_AGENT"].includes(error.code)) {
        const how = unsure ? "no longer asked: this answer, or another one, was taken" : "answered elsewhere";
        const known = now().given.get(item.id);
        const told = known?.state === "done" ? known.note : how;
        note(item, { state: "done", label: unsure ? label : "", note: told, until: Date.now() + SHOWN_MS });
        return;
      }
      note(item, { state: "refused", label, note: error.message, until: 0 });
      return;
    }
  }
}

/** Where an answer goes, and what it says of it. @param {Item} item @returns {[string, any]} */
function way(item) {
  // The name of an agent elsewhere may be that of an agent here, too; its task is nobody else's.
  if (item.ours || (item.task && item.terminal === false && !item.host)) return [`/control/tasks/${item.task}/input`, {}];
  if (item.host) return [`/hosts/${encodeURIComponent(item.host)}/input`, { agent: there(item.agent, item), task: item.task }];
  return [item.task ? `${agentPath(item.agent)}/tasks/${item.task}/input` : `/control${agentPath(item.agent)}/input`, {}];
}

/** What it is called over there. @param {string} name @param {Item} item */
const there = (name, { host }) => (host ? name.slice(0, -host.length - 1) : name);

/** Until so many milliseconds have passed, or the line is back. @param {number} wait */
function pause(wait) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("line-back", done);
      resolve(undefined);
    };
    const timer = setTimeout(done, wait);
    addEventListener("line-back", done);
  });
}

/** Put away what asks nothing. @param {Item} item */
async function putAway(item) {
  try {
    await post(`${item.host ? `/hosts/${encodeURIComponent(item.host)}` : ""}/inbox/${encodeURIComponent(there(item.id, item))}/seen`);
    put({ elsewhere: now().elsewhere.filter((one) => one.id !== item.id) });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.code !== "NOT_IN_INBOX") note(item, { state: "refused", label: "", note: error.message, until: Date.now() + SHOWN_MS });
  }
}

// Who saw to what was asked, if it was not this page. Events come a moment later than a list that is read meanwhile.
onEvent((event) => {
  if (event.event !== "attention" || event.data.state === "opened") return;
  const { id } = event.data;
  const item = [...now().gone, ...(now().inbox ?? [])].find((one) => one.id === id);
  const given = now().given.get(id);
  if (!item || given?.state === "sending" || given?.state === "done" || !isAsked(item)) return;
  note(item, { state: "done", label: given?.label ?? "", note: whoAnswered(event.data), until: Date.now() + SHOWN_MS });
});

/** The items to be shown: those that wait, and those that have just been seen to, each in its place. */
export function useInbox() {
  const inbox = useStore((state) => state.inbox);
  const elsewhere = useStore((state) => state.elsewhere);
  const given = useStore((state) => state.given);
  if (!inbox) return null;
  const open = [...inbox, ...elsewhere];
  const ids = new Set(open.map((item) => item.id));
  const over = [...given.values()].filter((one) => !ids.has(one.item.id)).map((one) => one.item);
  return [...open, ...over].sort((one, other) => order(one) - order(other) || one.since.localeCompare(other.since));
}

/** How many need a person: all of the inbox but what is finished or was answered here, as `synapsectl inbox` counts them. */
export function useWaiting() {
  const given = useStore((state) => state.given);
  return (useInbox() ?? []).filter((item) => item.kind !== "finished" && (given.get(item.id)?.state ?? "refused") === "refused").length;
}

/** What asks comes before what only tells. @param {Item} item */
const order = (item) => (item.prompt_id || item.kind === "sign_in" || item.kind === "unreadable" ? 0 : item.kind === "finished" ? 2 : 1);

/** @param {{clock: number, chosen?: string|null}} props */
export function Inbox({ clock, chosen = null }) {
  const items = useInbox();
  useLayoutEffect(look);
  const given = useStore((state) => state.given);
  const agents = useStore((state) => state.agents);
  const silent = useStore((state) => state.silent).map((line) => h("p", { class: "noright silent", key: line }, line));
  if (!items) return h("section", { class: "inbox", "aria-busy": "true" }, h("div", { class: "card ghost" }));
  const none = agents && !agents.length;
  const over = items.filter((item) => item.kind === "finished");
  const working = (agents ?? []).filter((one) => one.doing && one.activity === "busy");
  /** @param {Item[]} some */
  const cards = (some) => h("ul", { class: "cards" }, some.map((item) => h(Card, { key: item.id, item, given: given.get(item.id) ?? null, clock, chosen: chosen === item.id })));
  return h("section", { class: "inbox", "aria-label": "What waits for you", tabIndex: -1 },
    over.length < items.length ? cards(items.filter((item) => item.kind !== "finished")) : h("div", { class: "empty" },
      none ? "There are no agents; start one in a terminal: " : "Nobody needs you.", none ? h("code", null, "synapsectl start claude") : null,
      working.length ? h("ul", { class: "working" }, working.map((one) => h("li", { key: one.id }, h("a", { href: `#/agent/${encodeURIComponent(one.name)}` }, h("b", null, one.name), " works on ", h("q", { dir: "auto" }, one.doing))))) : null),
    silent,
    over.length ? h("div", { class: "apart" }, h("h2", null, "Finished"), may("answer") && over.length > 1 ? h("button", { type: "button", class: "tiny", onClick: () => over.forEach(putAway) }, "Put away all") : null) : null,
    over.length ? cards(over) : null);
}

/** A change in its colours, which come a moment later. @param {{text: string}} props */
function Change({ text }) {
  const [diff, setDiff] = useState(/** @type {((text: string) => any)|null} */ (null));
  useEffect(() => void import("./diff.js").then((module) => setDiff(() => module.diff), () => {}), []);
  return h("pre", { class: "command", tabIndex: 0, "aria-label": "the edit", dir: "ltr" }, diff ? diff(text) : text);
}

/** When a question was last settled, went away, or became another (`performance.now()`): a key may have been meant for that one. */
export const changed = { at: -Infinity };

/** What is asked, but for the rows in which its command stands, that is shown below it. @param {Item} item */
function asking({ question, command }) {
  const close = (/** @type {string} */ text) => text.replace(/\s/g, "");
  const rows = question.split("\n");
  const whole = close(command ?? "");
  for (let from = 0; whole && from < rows.length; from++) {
    for (let to = from, read = ""; to < rows.length && whole.startsWith(read); to++) {
      read += close(rows[to] ?? "");
      if (read === whole) return [...rows.slice(0, from), ...rows.slice(to + 1)].join("\n").trim() || question;
    }
  }
  return question;
}

/** @param {{item: Item, given: Given|null, clock: number, chosen: boolean, key?: string}} props */
export function Card({ item, given, clock, chosen }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  useEffect(() => {
    if (chosen) box.current?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const done = given?.state === "done";
  useLayoutEffect(() => () => void (changed.at = performance.now()), [item.id, item.prompt_id, done]); // at once, not when there is time
  const fresh = useFresh(box, `${item.id} ${item.prompt_id}`);
  const busy = given !== null && given.state !== "refused";
  const titled = `${item.agent}: ${KINDS[item.kind] ?? item.kind}`;
  return h("li", { class: `card ${busy ? given.state : ""} ${chosen ? "chosen" : ""}`, "data-kind": item.kind, tabIndex: -1, ref: box, "aria-label": titled, "data-item": item.id, onKeyDown: onHeldKey },
    h("header", null,
      item.host || item.terminal === false ? h("b", { class: "who", tabIndex: -1 }, item.agent) : h("a", { class: "who", href: `#/agent/${encodeURIComponent(item.agent)}` }, item.agent),
      h("span", { class: `kind k-${item.kind}` }, KINDS[item.kind] ?? item.kind),
      h(Where, { cwd: item.cwd }),
      h("time", { class: "when", dateTime: item.since, title: item.since }, ago(item.since, clock))),
    h("p", { class: "question", dir: "auto" }, visible(asking(item))),
    item.command ? h("pre", { class: "command", tabIndex: 0, "aria-label": "the command", dir: "ltr" }, visible(item.command)) : null,
    item.diff ? h(Change, { text: visible(item.diff) }) : null,
    busy ? h(Outcome, { given }) : h(Choices, { key: item.prompt_id, item, fresh }),
    given?.state === "refused" ? h("p", { class: "problem", role: "alert" }, given.note) : null);
}

/** @param {{given: Given}} props */
function Outcome({ given }) {
  const sign = given.state === "done" ? "✓" : "…";
  return h("p", { class: "outcome quiet", role: "status" }, h("span", { class: "sign", "aria-hidden": "true" }, sign), " ", given.label ? h("b", null, visible(given.label)) : null, given.label && given.note ? " · " : "", given.note || (given.state === "sending" ? "sending" : ""));
}

/** @param {HTMLElement|null} field */
const begin = (field) => field?.focus();

/** Of one question: nothing of it, and no word that was typed for it, is left to the next. @param {{item: Item, fresh: boolean, key?: string|null}} props */
function Choices({ item, fresh }) {
  const [words, setWords] = useState(/** @type {string|null} */ (localStorage.getItem(`words ${item.id} ${item.prompt_id}`)));
  if (!isAsked(item)) {
    // A host of a fleet tells no folder, and takes nothing but messages.
    const closed = item.host && (item.prompt_type || item.kind === "unreadable" || !item.cwd);
    const open = item.host ? closed && h("p", { class: "noright" }, `This is seen to on ${item.host}.`) : item.terminal === false ? null : h("a", { class: "button", href: `#/agent/${encodeURIComponent(item.agent)}` }, item.kind === "unreadable" ? "Look at its screen" : "Open");
    return h("div", { class: "choices" }, open, closed || item.kind === "unreadable" || !may("answer") ? null : h("button", { type: "button", "aria-disabled": fresh || null, onClick: (/** @type {MouseEvent} */ event) => counts(event) && putAway(item) }, "Put away"));
  }
  if (!may("answer")) return h("p", { class: "noright" }, "This device may look, not answer.");
  const yes = choice(item, true);
  const no = choice(item, false);
  const others = (item.options ?? []).filter((option) => option.key !== yes?.key && option.key !== no?.key);
  /** @param {import("./words.js").Option} option @param {string} kind @param {string} said */
  const button = (option, kind, said) =>
    h("button", { type: "button", class: kind, key: option.key, title: visible(option.label), "aria-disabled": fresh || null, onClick: (/** @type {MouseEvent} */ event) => counts(event) && answer(item, option.key, option.label), "data-key": option.key }, visible(said).split(/ {2,}/).map((text, at) => (at ? h("small", null, text) : text)));
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (words?.trim()) {
      answer(item, words, item.prompt_type === "password" ? "(hidden)" : words);
      setWords(null);
    }
  };
  const onlyWords = takesWords(item) && !(item.options?.length) && !yes;
  return h("div", null,
    h("div", { class: "choices" },
      yes ? button(yes, "yes", item.kind === "permission" ? "Approve" : yes.label) : null,
      others.map((option) => button(option, "other", option.label)),
      takesWords(item) && words === null && !onlyWords ? h("button", { type: "button", class: "other quiet", onClick: () => setWords("") }, "In your own words…") : null,
      no ? button(no, "no", item.kind === "permission" ? "Deny" : no.label) : null),
    takesWords(item) && (words !== null || onlyWords)
      ? h("form", { class: "words", onSubmit: send },
          item.prompt_type === "password"
            ? h("input", { type: "password", autocomplete: "off", "aria-label": "Your answer, not shown", value: words ?? "", onInput: (/** @type {any} */ event) => setWords(event.target.value) })
            : h("textarea", { rows: 1, ref: onlyWords || words ? null : begin, "aria-label": "Your answer", placeholder: "Your answer", value: words ?? "", dir: "auto", onInput: (/** @type {any} */ event) => setWords(event.target.value), onKeyDown: (/** @type {any} */ event) => { if (composes(event)) return; if (event.key === "Enter" && !event.shiftKey) send(event); else if (event.key === "Escape") setWords(null); } }),
          h("button", { type: "submit", class: "yes", disabled: !words?.trim() }, "Answer"))
      : null);
}
