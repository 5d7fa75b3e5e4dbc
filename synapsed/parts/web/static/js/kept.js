// What the lists said last, for a page that is opened without a line, and answers that were begun: kept in the browser, and
// gone with the device's session.

import { ROOT } from "./api.js";
import { now, put } from "./store.js";

const KEPT = `lists ${ROOT}`;
const EVERY_MS = 30_000;
/** An item that is longer is left out: nobody may answer a part of a question. */
const ITEM_MAX = 20_000;
const ITEMS_MAX = 50;
const AGENTS_MAX = 300;

/** What was kept last. @type {any} */
let last = null;

export function keep() {
  const { me, door, agents, inbox } = now();
  if (door !== "in" || !agents || !inbox || (last?.agents === agents && last.inbox === inbox)) return;
  last = { agents, inbox };
  const items = inbox.filter((item) => JSON.stringify(item).length <= ITEM_MAX).slice(0, ITEMS_MAX);
  try {
    localStorage.setItem(KEPT, JSON.stringify({ me, agents: agents.slice(0, AGENTS_MAX), inbox: items }));
  } catch {
    // There is no room: a page without a line is empty.
  }
}

/** Shows that, until the daemon says what is. */
export function bring() {
  try {
    const { me, agents, inbox } = JSON.parse(localStorage.getItem(KEPT) ?? "{}");
    if (now().door !== "unknown" || !Array.isArray(agents) || !Array.isArray(inbox) || !Array.isArray(me?.rights)) return;
    last = { agents, inbox };
    put({ me, agents, inbox, door: "in" });
  } catch {
    // It is of another version.
  }
}

/** An answer that was begun, by its item and prompt: the same question may be asked twice (`inbox.js` begins with it). A
 * password has another field. */
const WORDS = "words ";
const WORDS_LENGTH = 50_000;

function forgetWords() {
  for (const name of Object.keys(localStorage)) if (name.startsWith(WORDS)) localStorage.removeItem(name);
}

function keepWords() {
  forgetWords();
  const items = [...(now().inbox ?? []), ...now().elsewhere];
  for (const field of /** @type {NodeListOf<HTMLTextAreaElement>} */ (document.querySelectorAll(".card textarea"))) {
    const id = field.closest(".card")?.getAttribute("data-item");
    const item = items.find((one) => one.id === id);
    if (!item?.prompt_id || !field.value || field.value.length > WORDS_LENGTH) continue;
    try {
      localStorage.setItem(`${WORDS}${item.id} ${item.prompt_id}`, field.value);
    } catch {
      // There is no room: they are gone with the page.
    }
  }
}

/** Nobody who is not let in any more is told anything. */
export function forget() {
  forgetWords();
  for (const name of ["lists", "drafts"]) localStorage.removeItem(`${name} ${ROOT}`);
}

setInterval(keep, EVERY_MS);
const keepAll = () => {
  keep();
  keepWords();
};
addEventListener("pagehide", keepAll);
document.addEventListener("visibilitychange", () => document.hidden && keepAll());
keep();
