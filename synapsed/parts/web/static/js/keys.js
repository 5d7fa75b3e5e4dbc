// The keyboard at the desk. `?` shows the keys.

import { answer, changed } from "./inbox.js";
import { NOTICED, stood } from "./stood.js";
import { now, toast } from "./store.js";
import { choice, composes, isAsked } from "./words.js";

/** The field that was typed in last, and when. @type {{field: HTMLElement|null, at: number}} */
const typed = { field: null, at: -Infinity };

/** When the key that is acted on was pressed. */
let pressed = 0;

/** Whether the last key was `g`. However long ago: none of the keys that go with it does anything alone. */
let leading = false;

/** @param {KeyboardEvent} event */
export function onKey(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isForNewField(event)) return;
  if (target.matches?.("input, textarea, select, [contenteditable]")) {
    const closes = !composes(event) && (event.key === "Escape" || event.key === "Enter");
    typed.field = closes || target.matches("select") ? null : target; // what is chosen is not typed
    typed.at = event.timeStamp;
    if (closes && event.key === "Escape") {
      leave(target);
      event.preventDefault(); // a search field would be emptied, and the list would not know
    }
    return;
  }
  if (event.key === "Tab") {
    typed.field = null; // who goes elsewhere types on no more
    return;
  }
  if (isTypedOn(event)) {
    event.preventDefault();
    return;
  }
  if (event.key === "Enter") return;
  if (event.repeat && event.key !== "j" && event.key !== "k") return; // it is held: it was pressed once
  pressed = event.timeStamp;
  if (act(event.key)) event.preventDefault();
}

/** To what is around a field, or to what it finds. @param {HTMLElement} field */
function leave(field) {
  field.blur();
  const to = field.id === "find" ? document.querySelector(".left .agents") : field.closest("[tabindex]");
  if (to?.isConnected) /** @type {HTMLElement} */ (to).focus({ preventScroll: true });
}

/** Whether a key was pressed before this module was there, behind one that went to a field: it is written there.
 * @param {KeyboardEvent} event */
function isForNewField(event) {
  const field = document.activeElement;
  if (field === event.target || event.key.length !== 1) return false;
  if (!(field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement)) return false;
  field.setRangeText(event.key, field.selectionStart ?? 0, field.selectionEnd ?? 0, "end");
  field.dispatchEvent(new Event("input", { bubbles: true }));
  return true;
}

/** Whether somebody types on in a field that is gone: what it was for was settled elsewhere. @param {KeyboardEvent} event */
function isTypedOn(event) {
  if (!typed.field || typed.field.isConnected || event.timeStamp - typed.at > NOTICED) return false;
  typed.at = event.timeStamp;
  toast("What you were writing to is gone; what you typed since does nothing.");
  return true;
}

/** @param {string} key */
function act(key) {
  const to = leading && /** @type {Record<string, string>} */ ({ i: "#/", e: "#/events", h: "#/history", u: "#/usage" })[key];
  leading = false;
  if (to) {
    location.hash = to;
    return true;
  }
  switch (key) {
    case "?":
      import("./help.js").then((module) => module.help(), () => toast("A part of the page could not be loaded."));
      return true;
    case "g":
      leading = true;
      return true;
    case "Escape":
      return showAll();
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
  if (found instanceof HTMLInputElement) found.select();
  return Boolean(found);
}

function showAll() {
  const field = /** @type {HTMLInputElement|null} */ (document.querySelector("#find"));
  if (!field?.value) return false;
  field.value = "";
  field.dispatchEvent(new Event("input", { bubbles: true }));
  return true;
}

/** @param {string} where */
function click(where) {
  const found = /** @type {HTMLElement|null} */ (document.querySelector(where));
  found?.click();
  return Boolean(found);
}

/** The rows that can be gone through: what waits where the inbox is shown, agents elsewhere. What was settled is passed
 * over; who stands on it goes on from there. @param {number} by */
function step(by) {
  const here = document.activeElement;
  const waits = (/** @type {Element} */ one) => !one.closest(".done");
  const cards = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".right .home .card .who")]).filter((one) => one === here || waits(one));
  const rows = cards.some(waits) ? cards : /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".left .agents a")]);
  if (!rows.length) return false;
  let at = rows.indexOf(/** @type {HTMLElement} */ (here));
  if (at < 0) at = rows.findIndex((row) => row.getAttribute("aria-current") === "page");
  const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  return true;
}

function chosen() {
  const here = document.activeElement?.closest(".card");
  if (here?.matches(".done")) {
    toast("This is settled. j goes to what waits next.");
    return null;
  }
  const card = here ?? document.querySelector(".right .card:not(.done)");
  if (!stood(card, pressed) || (!here && pressed - changed.at < NOTICED)) {
    toast("Another question has come to the front: read it, then press again.");
    return null;
  }
  const id = card?.getAttribute("data-item");
  const item = [...(now().inbox ?? []), ...now().elsewhere].find((one) => one.id === id);
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
