// The one stream of events, and the lists that follow from it. Nothing is polled: what an event says is put into the list
// at once, what it does not say is asked for a moment later, once for many events.

import { ApiError, get, socketUrl } from "./api.js";
import { now, onEvent, put, told } from "./store.js";

/** @typedef {import("./words.js").Item} Item */

const FIRST_MS = 500;
const LONGEST_MS = 20_000;
/** After so long a list that could not be read is asked for again. */
const AGAIN_MS = 5000;
/** How long what agents do is gathered. */
const DRAWN_MS = 200;
/** A page that was hidden for so long may hold a dead connection: a phone that slept tells nobody. */
const ASLEEP_MS = 15_000;
/** Longer away than this, and the stream begins again: the lists are read whole anyway. */
const LONG_AWAY_MS = 600_000;

/** @type {WebSocket|null} */
let socket = null;
let lastId = 0;
let failures = 0;
let retry = 0;
/** When there was last a word, or the page was hidden. A clock may be set meanwhile, either way. */
let heardAt = 0;

export function start() {
  connect();
  addEventListener("online", () => again(0));
  addEventListener("offline", () => {
    put({ line: "offline" });
    socket?.close();
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) heardAt = Date.now();
    else if (now().line !== "live" || Math.abs(Date.now() - heardAt) > ASLEEP_MS) again(0);
  });
  onEvent(follow);
}

/** Connect again, after so many milliseconds. @param {number} wait */
export function again(wait) {
  clearTimeout(retry);
  if (socket) {
    socket.onclose = null;
    socket.close();
    socket = null;
  }
  if (wait) retry = setTimeout(connect, wait);
  else connect();
}

function connect() {
  if (socket) return;
  if (now().line === "live") put({ line: "connecting" });
  const cursor = lastId && Math.abs(Date.now() - heardAt) < LONG_AWAY_MS ? `&after=${lastId}` : "";
  const mine = new WebSocket(socketUrl(`/events?batch=100ms${cursor}`));
  socket = mine;
  let opened = false;
  mine.onopen = () => {
    opened = true;
    if (lastId || failures) void get("/web/me").then((me) => put({ me }), () => {}); // there may be another daemon now
    failures = 0;
    heardAt = Date.now();
    put({ line: "live" });
    void Promise.all([readAgents(), readInbox()]).then(behind).catch(() => {});
    dispatchEvent(new Event("line-back"));
  };
  mine.onmessage = (message) => {
    heardAt = Date.now();
    const event = /** @type {import("../events").SynapsedEvent} */ (JSON.parse(message.data));
    if (event.id) lastId = event.id;
    if (event.event === "gap") void Promise.all([readAgents(), readInbox()]);
    else told(event.event === "batchEvents" ? event.data : [event]);
  };
  mine.onclose = () => {
    if (socket !== mine) return;
    socket = null;
    failures += 1;
    put({ line: navigator.onLine === false || failures > 1 ? "offline" : "connecting" });
    void stillIn(opened);
    // Each waits a little differently, so that a daemon that comes back is not run over by all pages at once.
    const wait = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 8));
    again(wait * (0.5 + Math.random() / 2));
  };
}

/** What is of use only once the lists are there, and of that last what waits for another page, or for none. */
async function behind() {
  await import("./elsewhere.js");
  const [{ Newer }] = await Promise.all([import("./newer.js"), import("./kept.js")]);
  put({ Newer });
}

/**
 * A socket that is refused does not say why: it may be that this device was removed, or that the log ends before the
 * last event that came, because the daemon has an older database again.
 * @param {boolean} opened
 */
async function stillIn(opened) {
  try {
    await get("/whoami");
    if (!opened) lastId = 0;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
      clearTimeout(retry);
      put({ door: "out" });
    }
  }
}

// --- lists -----------------------------------------------------------------------------------------------------------

/** @param {() => Promise<void>} read @param {number} pause */
function gathered(read, pause) {
  let due = 0;
  let busy = false;
  let more = false;
  const run = async () => {
    due = 0;
    busy = true;
    more = false;
    await read();
    busy = false;
    if (more) ask();
  };
  const ask = () => {
    if (busy) more = true;
    else if (!due) due = setTimeout(run, pause);
  };
  return ask;
}

/** Gives each request its turn: of two, the first may be answered last, and is old by then. */
function inOrder() {
  let asked = 0;
  let taken = 0;
  return () => {
    const turn = ++asked;
    return () => turn > taken && (taken = turn) > 0;
  };
}

const ofAgents = inOrder();
const ofInbox = inOrder();

export async function readAgents() {
  const isNewer = ofAgents();
  try {
    const agents = /** @type {import("./store.js").Agent[]} */ (await get("/agents"));
    if (isNewer()) put({ agents });
  } catch {
    later(agentsSoon);
  }
}

export async function readInbox() {
  const isNewer = ofInbox();
  try {
    const inbox = /** @type {Item[]} */ (await get("/inbox"));
    if (!isNewer()) return;
    // The last fifty that are no longer asked are remembered until an event says who saw to them.
    const gone = now().inbox?.filter((item) => !inbox.some((one) => one.id === item.id)) ?? [];
    put({ inbox, gone: [...now().gone, ...gone].slice(-50) });
  } catch {
    later(inboxSoon);
  }
}

/** A list that the daemon could not give is asked for again while it tells events; when it is back, all are. @param {() => void} ask */
const later = (ask) => now().line === "live" && setTimeout(ask, AGAIN_MS);

const agentsSoon = gathered(readAgents, 700);
const inboxSoon = gathered(readInbox, 30);

/** @param {import("./store.js").SingleEvent} event */
function follow(event) {
  const { agent } = event;
  switch (event.event) {
    case "attention":
      inboxSoon();
      break;
    case "activity":
      change(agent, { activity: event.data.activity, evidence: event.data.evidence, since: event.time, doing: null });
      agentsSoon();
      break;
    case "agentState":
      if (event.data.state === "removed") put({ agents: now().agents?.filter((one) => one.id !== agent) ?? null });
      else change(agent, { state: event.data.state, restarts: event.data.restarts, since: event.time });
      agentsSoon();
      break;
    case "taskStatus":
    case "taskDelivered":
      agentsSoon();
      break;
    default:
  }
}

/** What events say of agents, until it is drawn: many at once, so that sixty busy agents are no sixty drawings.
 * @type {Map<string|null, Partial<import("./store.js").Agent>>} */
const changes = new Map();
let drawing = 0;

/** @param {string|null} id @param {Partial<import("./store.js").Agent>} change */
function change(id, change) {
  changes.set(id, { ...changes.get(id), ...change });
  drawing ||= setTimeout(() => {
    drawing = 0;
    const known = now().agents?.map((one) => (changes.has(one.id) ? { ...one, ...changes.get(one.id) } : one)) ?? null;
    changes.clear();
    put({ agents: known });
  }, DRAWN_MS);
}
