// Where the keyboard goes on when what had it is gone: answered, put away, closed, or of another view. Loaded with the
// first key that is pressed.

import { rules } from "./main.js";

/** What the keyboard is at, and all that this stands in; nothing where a pointer led there. @type {Element[]} */
let path = [];
/** The address at which it got there. */
let at = "";

function note() {
  path = [];
  at = location.hash;
  const has = document.activeElement;
  if (has === document.body || !has?.matches(":focus-visible")) return;
  for (let one = /** @type {Element|null} */ (has); one; one = one.parentElement) path.push(one);
}

/** The closest around it that is still there: never a button, for which the next key may not be meant. Who comes back to a
 * list stands where they left it. */
function goOn() {
  if (document.activeElement !== document.body || !path[0] || path[0].isConnected) return;
  const around = path.find((one) => one.isConnected && one.matches("[tabindex]")) ?? document.querySelector("main");
  const back = at !== location.hash && location.hash.split("/").length < 3; // to a view without a name
  const left = back ? document.querySelector(`main a[href="${CSS.escape(at)}"]`) : null;
  path = [];
  /** @type {HTMLElement|null|undefined} */ (left || around)?.focus({ preventScroll: !left });
}

document.addEventListener("focusin", note);
document.addEventListener("pointerdown", () => (path = []), true);
new MutationObserver(goOn).observe(document.body, { childList: true, subtree: true });
void rules("views"); // among them those of what has the focus
note();
