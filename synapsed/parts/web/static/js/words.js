// What things are called here, and which option of a prompt says yes or no (as synapsed/shared/choices.py has it).

import { h } from "../vendor/preact.mjs";
import { visible } from "./visible.js";

/** @typedef {{key: string, label: string}} Option */
/**
 * @typedef {object} Item  What waits for a person (GET /inbox).
 * @property {string} id
 * @property {string} agent
 * @property {string} agent_id
 * @property {string|null} host  Another host, on which it waits
 * @property {boolean} [ours]  It waits there in a task of ours, which is answered here
 * @property {string} cwd
 * @property {string} kind
 * @property {string} question
 * @property {string|null} command
 * @property {string|null} diff
 * @property {Option[]|null} options
 * @property {string} since
 * @property {string|null} task
 * @property {string|null} prompt_id
 * @property {string|null} prompt_type
 * @property {boolean} own_words
 * @property {string|null} until
 * @property {boolean} [terminal]  Its agent has a terminal here, and a page
 */

/** @type {Record<string, string>} */
export const KINDS = {
  permission: "permission",
  question: "question",
  plan: "plan",
  sign_in: "sign-in",
  limit: "limit",
  account: "account",
  failure: "failure",
  crash_loop: "crash loop",
  unreadable: "not understood",
  finished: "finished",
  alert: "alert",
};

/**
 * Why messages are held, in more than the word for it (as synapsectl/agentrows.py has it).
 * @type {Record<string, string>}
 */
export const HELD = {
  typing: "its input line is not empty",
  keeper: "the process that holds its terminal does not answer",
  dialog: "it asks something",
  limit: "its usage limit is reached",
  account: "its account does not work: see inbox",
  unread: "it has not read what was typed",
  restart: "it is restarted before its next message",
  "no composer on the screen": "it shows no input line",
};

/** @type {Record<string, string>} */
const WHERE = { terminal: "at its terminal", control: "by the tool", http: "over HTTP", a2a: "over A2A", inbox: "in another inbox" };

const YES = new Set(["accept", "allow", "approve", "confirm", "continue", "ok", "proceed", "trust", "y", "yes"]);
const NO = new Set(["cancel", "decline", "deny", "disallow", "don't", "don’t", "do not", "esc", "exit", "n", "no", "quit", "reject"]);
const LASTING = ["always", "ask again", "all future", "automatically", "during this session", "for this session", "auto mode", "remember", "future sessions", "parent folder", "parent directory"];
const FIRST = /^[^\p{L}\p{N}_]*(don['’]t|do not|[\p{L}\p{N}_]+)/u;
const PLAIN = /^[^\p{L}\p{N}_]*[\p{L}\p{N}_]+(?:,? (?:once|one time|allow once|this once))?[^\p{L}\p{N}_]*(?:\([^()]*\))?[^\p{L}\p{N}_]*$/u;

/** @param {Option} option @param {boolean} accept */
function says(option, accept) {
  const label = option.label.toLowerCase();
  if (accept && LASTING.some((word) => label.includes(word))) return false;
  const words = accept ? YES : NO;
  const first = FIRST.exec(label);
  return words.has(option.key.toLowerCase()) || (first !== null && words.has(first[1] ?? ""));
}

/**
 * The option that says yes (or no) to what is asked now and to no more; null where none does for sure.
 * @param {Item} item @param {boolean} accept @returns {Option|null}
 */
export function choice(item, accept) {
  const options = item.options ?? [];
  if (item.prompt_type === "screen" || !item.prompt_id) return null;
  if (item.prompt_type === "confirmation" && !options.length) return accept ? { key: "y", label: "Yes" } : { key: "n", label: "No" };
  let meant = options.filter((option) => says(option, accept));
  if (meant.length > 1) meant = meant.filter((option) => PLAIN.test(option.label));
  return meant.length === 1 ? (meant[0] ?? null) : null;
}

/** @param {Item} item */
export const isAsked = (item) => Boolean(item.prompt_id) && item.kind !== "unreadable";
/** @param {Item} item */
export const takesWords = (item) => isAsked(item) && (item.own_words || !item.options?.length);

/** Whether a key is of an input method, which makes a text with it; Safari says so of the last one by its code only. @param {KeyboardEvent} event */
export const composes = (event) => event.isComposing || event.keyCode === 229;

/** @param {{state?: string, by?: string|null, who?: string|null, where?: string|null}} closed */
export function whoAnswered(closed) {
  if (closed.state === "gone" || !closed.by) return "no longer asked";
  const who = closed.who || closed.by;
  return ["answered by", who === "person" ? "a person" : who, WHERE[String(closed.where)] ?? ""].filter(Boolean).join(" ");
}

/** @param {string|null|undefined} since @param {number} now */
export function ago(since, now) {
  const then = Date.parse(since ?? "");
  if (Number.isNaN(then)) return "";
  const seconds = Math.max(0, Math.round((now - then) / 1000));
  if (seconds < 10) return "now";
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** A folder by its end, of which the beginning is left out where there is no room. @param {{cwd: string}} props */
export const Where = ({ cwd }) => h("span", { class: cwd === project(cwd) ? "where" : "where own", title: cwd }, h("bdi", { dir: "ltr" }, visible(folder(cwd))));

/** The folder of a repository for one of its worktrees (`synapsectl start --worktree`), and every other as it is. @param {string} cwd */
export const project = (cwd) => cwd.replace(/^(.*[^/])\.worktrees\/.*$/, "$1");

/** The last two parts of a folder: what a person knows it by. @param {string} path */
export function folder(path) {
  const parts = path.split("/").filter(Boolean);
  return parts.length > 2 ? `…/${parts.slice(-2).join("/")}` : path;
}
