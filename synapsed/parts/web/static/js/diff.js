// A change as it is written: how much comes and goes, what does, and where it stands.

import { h } from "../vendor/preact.mjs";
import { rules } from "./main.js";

void rules("views"); // a phone's inbox has none of them

/** @param {string} text */
export function diff(text) {
  const [more, less] = [/^\+(?!\+\+)/gm, /^-(?!--)/gm].map((sign) => text.match(sign)?.length ?? 0);
  const lines = text.replace(/\n$/, "").split("\n").map((line) => {
    const kind = line.startsWith("+") && !line.startsWith("+++") ? "add" : line.startsWith("-") && !line.startsWith("---") ? "del" : line.startsWith("@@") ? "hunk" : "";
    return kind ? h("span", { class: `d-${kind}` }, `${line}\n`) : `${line}\n`;
  });
  return [more || less ? h("span", { class: "d-sum" }, `+${more} −${less}`) : null, ...lines];
}
