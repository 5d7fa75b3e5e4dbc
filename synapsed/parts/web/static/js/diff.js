// A change as it is written: what comes, what goes, where it stands.

import { h } from "../vendor/preact.mjs";

/** @param {string} text */
export function diff(text) {
  return text.split("\n").map((line) => {
    const kind = line.startsWith("+") && !line.startsWith("+++") ? "add" : line.startsWith("-") && !line.startsWith("---") ? "del" : line.startsWith("@@") ? "hunk" : "";
    return kind ? h("span", { class: `d-${kind}` }, `${line}\n`) : `${line}\n`;
  });
}
