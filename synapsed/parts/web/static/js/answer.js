// An answer, which may be long and may still be written: a piece of it at a time, and what has not changed is left alone.

import { h } from "../vendor/preact.mjs";
import { useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.mjs";
import { markdown, pieces } from "./markdown.js";
import { slice } from "./slices.js";

/** Characters that are made into nodes at once, without anybody seeing it stutter. */
const PIECE = 1500;
/** So many pieces of an answer are shown unasked, where it is not the newest. */
const SHORT = 2;

/** @param {{text: string, newest: boolean}} props */
export function Answer({ text, newest }) {
  const parts = useMemo(() => pieces(text, PIECE), [text]);
  const [whole, setWhole] = useState(newest || parts.length <= SHORT + 1);
  const [there, setThere] = useState(1);
  const kept = useRef(/** @type {{text: string, node: any}[]} */ ([]));
  useLayoutEffect(() => {
    if (there >= (whole ? parts.length : Math.min(SHORT, parts.length))) return undefined;
    return slice(() => setThere(there + 1));
  });
  const shown = parts.slice(0, there);
  // A node that is the same as before is passed over, with all that is in it.
  kept.current = shown.map((part, at) => (kept.current[at]?.text === part ? kept.current[at] : { text: part, node: h("div", { class: "piece", key: at }, markdown(part)) }));
  const rest = whole ? 0 : parts.slice(SHORT).reduce((sum, part) => sum + part.length, 0);
  return h("div", { class: "bubble answer md", dir: "auto" },
    kept.current.map((one) => one.node),
    rest ? h("button", { type: "button", class: "tiny", onClick: () => setWhole(true) }, `Show the rest (${Math.ceil(rest / 1000)} k characters)`) : null);
}
