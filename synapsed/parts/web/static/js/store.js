// What the page knows, in one place. Views pick what they show and are drawn again when that changes.

import { useEffect, useReducer, useRef } from "../vendor/hooks.mjs";

/** @typedef {import("./words.js").Item} Item */
/** @typedef {import("../events").SingleEvent} SingleEvent */
/**
 * @typedef {object} Agent  An element of GET /agents.
 * @property {string} name
 * @property {string} id
 * @property {string} type
 * @property {string} state
 * @property {string} activity
 * @property {string} since
 * @property {string} evidence
 * @property {string|null} held
 * @property {number} [background]
 * @property {number} queue
 * @property {string|null} task
 * @property {string} cwd
 * @property {string|null} [asks]
 * @property {string|null} [doing]
 * @property {string|null} [version]
 * @property {number} [restarts]
 */
/**
 * @typedef {object} Me  Who this page is to the daemon.
 * @property {{id: string, name: string, push?: boolean}|null} device
 * @property {string[]} rights
 * @property {string|null} push_key
 * @property {string} version
 * @property {string} page  Which page the daemon has
 */
/**
 * @typedef {object} Given  What became of an answer, by the item's id.
 * @property {"sending"|"retrying"|"done"|"refused"} state
 * @property {string} label
 * @property {string} note
 * @property {Item} item
 * @property {number} until  When it is taken away, 0: it stays
 */
/**
 * @typedef {object} State
 * @property {"connecting"|"live"|"offline"} line
 * @property {Me|null} me
 * @property {"unknown"|"in"|"out"} door
 * @property {Agent[]|null} agents
 * @property {Item[]|null} inbox
 * @property {Item[]} elsewhere  What waits on other hosts
 * @property {string[]} silent  What is to be said of hosts that do not say it
 * @property {Item[]} gone  What the last lists no longer had: its event may come after the list
 * @property {Map<string, Given>} given
 * @property {SingleEvent[]} events  The last that came, oldest first
 * @property {string} route
 * @property {string} toast
 * @property {any} Newer  Looks whether there is a newer page; loaded behind the lists
 */

/** How many events are kept for those who look at them. */
export const EVENTS_KEPT = 400;

/** @type {State} */
let state = {
  line: "connecting",
  me: null,
  door: "unknown",
  agents: null,
  inbox: null,
  elsewhere: [],
  silent: [],
  gone: [],
  given: new Map(),
  events: [],
  route: location.hash,
  toast: "",
  Newer: null,
};

/** @type {Set<() => void>} */
const watchers = new Set();
/** @type {Set<(event: SingleEvent) => void>} */
const listeners = new Set();

/** The agents to whom something was begun and not sent. @type {Set<string>} */
export const unsent = new Set();

export const now = () => state;

/** @param {Partial<State>} change */
export function put(change) {
  state = { ...state, ...change };
  for (const watcher of watchers) watcher();
}

/**
 * @template T
 * @param {(state: State) => T} pick
 * @returns {T}
 */
export function useStore(pick) {
  const [, again] = useReducer((/** @type {number} */ n) => n + 1, 0);
  const shown = pick(state);
  const last = useRef(shown);
  const how = useRef(pick);
  last.current = shown;
  how.current = pick;
  useEffect(() => {
    const look = () => {
      if (how.current(state) !== last.current) again(undefined);
    };
    watchers.add(look);
    look();
    return () => {
      watchers.delete(look);
    };
  }, []);
  return shown;
}

/** @param {(event: SingleEvent) => void} listener */
export function onEvent(listener) {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

/** @param {SingleEvent[]} events */
export function told(events) {
  const kept = [...state.events, ...events];
  put({ events: kept.length > EVENTS_KEPT ? kept.slice(-EVENTS_KEPT) : kept });
  for (const event of events) for (const listener of listeners) listener(event);
}

/** @param {string} right */
export const may = (right) => state.me?.rights.includes(right) ?? false;

let toastTimer = 0;
/** @param {string} text */
export function toast(text) {
  put({ toast: text });
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => put({ toast: "" }), 5000);
}
