// The search in a terminal: all matches are marked and counted, also those above the window.

import { h } from "../vendor/preact.mjs";
import { useEffect, useRef, useState } from "../vendor/hooks.mjs";
import { SearchAddon } from "../vendor/addon-search.mjs";
import { composes } from "./words.js";

/** So many are marked; of more it is told that there are. */
const MOST = 1000;
const MARKS = { matchBackground: "#5b4a14", matchOverviewRuler: "#5b4a14", activeMatchBackground: "#b98900", activeMatchColorOverviewRuler: "#b98900" };

/** @param {{term: any, done: () => void}} props */
export function Find({ term, done }) {
  const [words, setWords] = useState("");
  const [found, setFound] = useState({ resultIndex: -1, resultCount: 0 });
  const finder = useRef(/** @type {any} */ (null));
  const field = useRef(/** @type {HTMLInputElement|null} */ (null));
  useEffect(() => {
    const made = new SearchAddon({ highlightLimit: MOST });
    term.loadAddon(made);
    made.onDidChangeResults(setFound);
    finder.current = made;
    field.current?.focus();
    return () => {
      made.clearDecorations();
      made.dispose();
    };
  }, [term]);
  const find = (/** @type {string} */ text, back = false, incremental = false) => {
    setWords(text);
    const options = { decorations: MARKS, incremental };
    if (!text) {
      finder.current.clearDecorations();
      setFound({ resultIndex: -1, resultCount: 0 });
    } else if (back) finder.current.findPrevious(text, options);
    else finder.current.findNext(text, options);
  };
  const { resultIndex, resultCount } = found;
  const count = !words ? "" : !resultCount ? "no match" : resultIndex < 0 ? `${resultCount} or more` : `${resultIndex + 1} of ${resultCount}`;
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (composes(event)) return;
    if (event.key === "Enter") find(words, event.shiftKey);
    else if (event.key === "Escape") done();
    else return;
    event.preventDefault();
    event.stopPropagation(); // it is not the page's
  };
  return h("span", { class: "finding" },
    h("input", { type: "search", ref: field, value: words, "aria-label": "Search the terminal", onInput: (/** @type {any} */ event) => find(event.target.value, false, true), onKeyDown: onKey }),
    h("span", { class: "quiet", role: "status" }, count),
    h("button", { type: "button", class: "tiny", "aria-label": "Previous match", onClick: () => find(words, true) }, "↑"),
    h("button", { type: "button", class: "tiny", "aria-label": "Next match", onClick: () => find(words) }, "↓"),
    h("button", { type: "button", class: "tiny", "aria-label": "End the search", onClick: done }, "×"));
}
