// What waits on other hosts. No event of this daemon tells of it: it is asked for now and then, while somebody looks.

import { get } from "./api.js";
import { note } from "./inbox.js";
import { now, put } from "./store.js";
import { isAsked } from "./words.js";

/** @typedef {import("./words.js").Item} Item */

const EVERY_MS = 4000;
/** Where there are no other hosts. */
const NONE_MS = 60_000;
const SHOWN_MS = 6000;

let timer = 0;
let busy = false;

async function look() {
  clearTimeout(timer);
  if (busy || document.hidden) return;
  busy = true;
  let hosts = 1;
  try {
    const told = await get("/inbox?hosts=1");
    hosts = told.hosts.length;
    await take(told);
  } catch {
    // The stream's end says that the daemon is away; what was told last stays.
  }
  busy = false;
  timer = setTimeout(look, hosts ? EVERY_MS : NONE_MS);
}

/** The rows of a host that does not answer stay as it told them last. @param {{items: Item[], hosts: any[]}} told */
async function take({ items, hosts }) {
  const before = now().elsewhere;
  if (!hosts.length && !before.length) return;
  const mute = new Set(hosts.filter((one) => one.error).map((one) => one.name));
  const found = await Promise.all(items.filter((item) => item.host).map(whole));
  const after = [...found, ...before.filter((item) => mute.has(item.host))];
  for (const item of before) {
    if (isAsked(item) && !after.some((one) => one.id === item.id) && !now().given.has(item.id)) note(item, { state: "done", label: "", note: "no longer asked", until: Date.now() + SHOWN_MS });
  }
  const silent = hosts.flatMap((one) => (one.error ? [`${one.name}: ${one.error}`] : one.left_out ? [`${one.name}: ${one.left_out} more are not shown`] : []));
  put({ elsewhere: after, silent });
}

/** A host of a fleet tells no text; where it asks in a task of ours, the task here has it. @param {Item} item @returns {Promise<Item>} */
async function whole(item) {
  if (item.prompt_id || !item.task) return item;
  try {
    const { prompt } = (await get(`/control/tasks/${encodeURIComponent(item.task)}`)).task;
    if (!prompt) return item;
    return { ...item, question: prompt.prompt, options: prompt.options ?? [], prompt_id: prompt.prompt_id, prompt_type: prompt.type, own_words: Boolean(prompt.own_words), ours: true };
  } catch {
    return item;
  }
}

addEventListener("line-back", look);
document.addEventListener("visibilitychange", look);
void look();
