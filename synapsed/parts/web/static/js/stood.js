// Since when a question stands where it stands. A press counts for what a person can have read there: not for a question
// that came, changed, or slid under the finger in the moment of the press, and not for a key that is held.

import { useLayoutEffect, useState } from "../vendor/hooks.mjs";
import { toast } from "./store.js";

/** Milliseconds in which nobody has read a question that came, or has seen that a field is gone. */
export const NOTICED = 700;

/** @typedef {{top: number, at: number, timer: number, tell: (fresh: boolean) => void}} Standing */

/** @type {Map<HTMLElement, Standing>} */
const cards = new Map();
const sizes = new ResizeObserver(look);

/** Take note of the questions that have moved. */
export function look() {
  for (const [card, known] of cards) {
    if (card.offsetTop !== known.top) begin(card, known);
  }
}

/** @param {HTMLElement} card @param {Standing} known */
function begin(card, known) {
  clearTimeout(known.timer);
  known.top = card.offsetTop;
  known.at = performance.now();
  known.timer = setTimeout(known.tell, NOTICED, false);
  known.tell(true);
}

/**
 * Whether the question `of`, in the card `box`, has come or moved so lately that no press is for it.
 * @param {{current: HTMLElement|null}} box @param {string} of
 */
export function useFresh(box, of) {
  const [fresh, tell] = useState(true);
  useLayoutEffect(() => {
    const card = box.current;
    if (!card) return undefined;
    const known = { top: 0, at: 0, timer: 0, tell };
    cards.set(card, known);
    begin(card, known);
    const around = [card, card.closest("main")].filter((one) => one !== null);
    for (const one of around) sizes.observe(one);
    return () => {
      clearTimeout(known.timer);
      cards.delete(card);
      sizes.unobserve(card);
    };
  }, [of]);
  return fresh;
}

/** Whether what stands in `card` had been there long enough when something was pressed. @param {Element|null} card @param {number} when */
export function stood(card, when) {
  const known = cards.get(/** @type {HTMLElement} */ (card));
  return known === undefined || when - known.at >= NOTICED;
}

/** Whether a click, or the key that made it, is for what stands there; who pressed is told where it is not. @param {MouseEvent} event */
export function counts(event) {
  const card = /** @type {Element} */ (event.currentTarget).closest(".card");
  if (stood(card, event.timeStamp)) return true;
  toast("One press answers one question: read this one, then press again.");
  return false;
}

/** A key that is held presses no button again and again. @param {KeyboardEvent} event */
export function onHeldKey(event) {
  if (event.repeat && (event.key === "Enter" || event.key === " ") && /** @type {Element} */ (event.target).closest("button")) event.preventDefault();
}
