// One tool call: what was asked for, and what came of it; loaded when the calls of a task are first opened.

import { h } from "../vendor/preact.mjs";
import { diff } from "./diff.js";
import { brief } from "./tasks.js";

/** @param {{call: any, key?: any}} props */
export function Call({ call }) {
  const sign = call.status === "started" ? "…" : call.status === "failed" ? (call.denied ? "⊘" : "✗") : "✓";
  const input = call.input && typeof call.input === "object" ? call.input : {};
  const change = typeof input.old_string === "string" && typeof input.new_string === "string" ? [...input.old_string.split("\n").map((/** @type {string} */ line) => `-${line}`), ...input.new_string.split("\n").map((/** @type {string} */ line) => `+${line}`)].join("\n") : "";
  const output = call.output && typeof call.output === "object" ? (typeof call.output.text === "string" ? call.output.text : call.output.truncated ? `(${call.output.size} characters)` : JSON.stringify(call.output, null, 2)) : "";
  return h("details", { class: `call c-${call.status}` },
    h("summary", null, h("span", { class: "sign", role: "img", "aria-label": call.denied ? "denied" : call.status }, sign), " ", h("b", null, call.tool_name), " ", h("code", null, brief(call.input)), call.duration_ms ? h("span", { class: "quiet" }, ` ${(call.duration_ms / 1000).toFixed(1)} s`) : null),
    change ? h("pre", { tabIndex: 0, dir: "ltr" }, diff(change)) : call.input ? h("pre", { tabIndex: 0, dir: "ltr" }, JSON.stringify(call.input, null, 2)) : null,
    typeof call.error === "string" ? h("p", { class: "problem" }, call.error) : null,
    output ? h("pre", { tabIndex: 0, dir: "ltr" }, output.slice(0, 20_000)) : null);
}
