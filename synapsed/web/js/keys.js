// The keyboard at the desk. `?` shows the keys.

import { answer } from "./inbox.js";
import { now } from "./store.js";
import { choice, isAsked } from "./words.js";

/** @type {[string, string][]} */
const HELP = [
  ["?", "these keys"],
  ["j  k", "next, previous agent or question"],
  ["Enter", "open"],
  ["/", "find an agent"],
  ["g i", "inbox"],
  ["g e", "events"],
  ["g h", "history"],
  ["g u", "usage"],
  ["y  n", "yes, no to the chosen question (the first one if none is chosen)"],
  ["1 … 9", "its options"],
  ["m", "write to the agent"],
  ["t", "type in its terminal"],
  ["s", "side by side"],
  ["Ctrl Shift F", "search in a terminal"],
  ["Esc", "leave a field"],
];

let leading = 0;

/** @param {KeyboardEvent} event */
export function onKey(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (target.closest?.("[data-keys=own]")) return;
  if (target.matches?.("input, textarea, select, [contenteditable]")) {
    if (event.key === "Escape") target.blur();
    return;
  }
  if (event.key === "Enter") return;
  if (act(event.key)) event.preventDefault();
}

/** @param {string} key */
function act(key) {
  if (leading && Date.now() - leading < 1500) {
    leading = 0;
    const to = /** @type {Record<string, string>} */ ({ i: "#/", e: "#/events", h: "#/history", u: "#/usage" })[key];
    if (to) location.hash = to;
    return Boolean(to);
  }
  switch (key) {
    case "?":
      help();
      return true;
    case "g":
      leading = Date.now();
      return true;
    case "/":
      return focus("#find");
    case "m":
      return focus("#message");
    case "t":
      return click("#terminal");
    case "s":
      return click(".bar a[href^='#/side/']");
    case "j":
      return step(1);
    case "k":
      return step(-1);
    case "y":
    case "n":
      return decide(key === "y");
    default:
      return /^[1-9]$/.test(key) && option(key);
  }
}

/** @param {string} where */
function focus(where) {
  const found = /** @type {HTMLElement|null} */ (document.querySelector(where));
  found?.focus();
  return Boolean(found);
}

/** @param {string} where */
function click(where) {
  const found = /** @type {HTMLElement|null} */ (document.querySelector(where));
  found?.click();
  return Boolean(found);
}

/** The rows that can be gone through: questions where the inbox is shown, agents elsewhere. @param {number} by */
function step(by) {
  const cards = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".right .home .card a.who")]);
  const rows = cards.length ? cards : /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".left .agents a")]);
  if (!rows.length) return false;
  let at = rows.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  if (at < 0) at = rows.findIndex((row) => row.getAttribute("aria-current") === "page");
  const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  return true;
}

function chosen() {
  const here = document.activeElement?.closest(".card");
  const card = here ?? document.querySelector(".right .card");
  const id = card?.getAttribute("data-item");
  const item = now().inbox?.find((one) => one.id === id);
  return item && isAsked(item) ? item : null;
}

/** @param {boolean} accept */
function decide(accept) {
  const item = chosen();
  const option = item && choice(item, accept);
  if (item && option) void answer(item, option.key, option.label);
  return Boolean(option);
}

/** @param {string} digit */
function option(digit) {
  const item = chosen();
  const options = item?.options ?? [];
  const found = options.find((one) => one.key === digit) ?? (options.some((one) => /^[1-9]$/.test(one.key)) ? undefined : options[Number(digit) - 1]);
  if (item && found) void answer(item, found.key, found.label);
  return Boolean(found);
}

function help() {
  const old = document.querySelector("dialog.help");
  if (old) {
    old.remove();
    return;
  }
  const dialog = document.createElement("dialog");
  dialog.className = "help";
  dialog.setAttribute("aria-label", "Keys");
  const list = document.createElement("dl");
  for (const [keys, does] of HELP) {
    const term = document.createElement("dt");
    for (const key of keys.split(/ +/)) {
      const kbd = document.createElement("kbd");
      kbd.textContent = key;
      term.append(kbd, " ");
    }
    const meaning = document.createElement("dd");
    meaning.textContent = does;
    list.append(term, meaning);
  }
  const title = document.createElement("h2");
  title.textContent = "Keys";
  dialog.append(title, list);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", () => dialog.close());
  dialog.addEventListener("keydown", (event) => {
    if (!dialog.open) return; // it has the focus for a moment longer: the key is the page's
    if (event.key === "?") dialog.close();
    event.stopPropagation();
  });
  document.body.append(dialog);
  dialog.showModal();
}
