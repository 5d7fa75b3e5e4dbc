// Markdown of agents as nodes of the page: headings, paragraphs, lists, tables, quotations, code, emphasis, links. What it
// makes are elements with text in them and never markup that was read; links are http and https and nothing else. A long
// answer, which may still be written, is made a piece at a time, and a piece that has not changed is left alone.

import { h } from "../vendor/preact.mjs";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.mjs";
import { diff } from "./diff.js";
import { safe } from "./links.js";
import { toast } from "./store.js";

/** @typedef {import("../vendor/preact.mjs").ComponentChild} Child */

/** Beyond this a text is shown as it is: nobody reads it, and it must not hold up the page. */
const LONGEST = 200_000;
const DEEPEST = 6;

const FENCE = /^( {0,3})(`{3,}|~{3,})\s*([^`\s]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^( *)([-*+•]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const TABLE_LINE = /^ {0,3}\|?\s*:?-{1,}:?\s*(?:\|\s*:?-{1,}:?\s*)*\|?\s*$/;
const INLINE = /(`+)([^`]|[^`][^]*?[^`])\1(?!`)|\*\*([^\s*](?:[^]*?[^\s*])?)\*\*|__([^\s_](?:[^]*?[^\s_])?)__(?![\p{L}\p{N}])|(?<![\p{L}\p{N}*])\*([^\s*](?:[^*]*?[^\s*])?)\*(?!\*)|(?<![\p{L}\p{N}_])_([^\s_](?:[^_]*?[^\s_])?)_(?![\p{L}\p{N}_])|~~([^~]+)~~|!?\[([^\]\n]{1,500})\]\((<[^<>\n]{1,2000}>|[^\s()]{1,2000}(?:\([^\s()]{0,500}\)[^\s()]{0,500})?)(?:\s+"[^"\n]{0,200}")?\)|(?:https?:\/\/)[^\s<>"'`|]+/gu;

/** @param {string} text @returns {Child[]} */
export function markdown(text) {
  if (text.length > LONGEST) return [h("pre", { class: "plain", dir: "auto" }, text)];
  return blocks(text.replaceAll("\r\n", "\n").split("\n"), 0);
}

/**
 * A text in pieces that mean the same alone, of about `size` characters each: what is written at its end changes the last
 * one and no other. They end in front of a blank line behind which nothing goes on that was begun before.
 * @param {string} text @param {number} size @returns {string[]}
 */
export function pieces(text, size) {
  if (text.length > LONGEST) return [text];
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const made = [];
  let begin = 0;
  let length = 0;
  /** @type {RegExp|null} */
  let end = null;
  lines.forEach((line, at) => {
    const next = lines[at + 1];
    const mark = end ? null : FENCE.exec(line)?.[2];
    if (end?.test(line)) end = null;
    else if (mark) end = closing(mark);
    length += line.length + 1;
    if (length < size || end || line.trim() || !next || /^\s/.test(next) || ITEM.test(next) || QUOTE.test(next)) return;
    made.push(lines.slice(begin, at + 1).join("\n"));
    begin = at + 1;
    length = 0;
  });
  made.push(lines.slice(begin).join("\n"));
  return made;
}

/** What ends a fence. @param {string} mark */
const closing = (mark) => new RegExp(`^ {0,3}${mark[0]}{${mark.length},}\\s*$`);

/** @param {string[]} lines @param {number} depth @returns {Child[]} */
function blocks(lines, depth) {
  /** @type {Child[]} */
  const made = [];
  /** @type {string[]} */
  let run = [];
  const flush = () => {
    if (run.length) made.push(h("p", { dir: "auto" }, inline(run.join("\n"))));
    run = [];
  };
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    const fence = FENCE.exec(line);
    if (fence) {
      flush();
      const [, indent = "", mark = "", language = ""] = fence;
      const end = closing(mark);
      const code = [];
      for (at += 1; at < lines.length && !end.test(lines[at] ?? ""); at += 1) code.push(unindented(lines[at] ?? "", indent.length));
      made.push(h(Code, { text: code.join("\n"), language }));
      continue;
    }
    if (!line.trim()) {
      flush();
      continue;
    }
    const heading = HEADING.exec(line);
    if (heading) {
      flush();
      made.push(h(`h${Math.min(6, (heading[1]?.length ?? 1) + 2)}`, { dir: "auto" }, inline(heading[2] ?? "")));
      continue;
    }
    if (RULE.test(line)) {
      flush();
      made.push(h("hr", null));
      continue;
    }
    if (QUOTE.test(line) && depth < DEEPEST) {
      flush();
      const inner = [];
      for (; at < lines.length && QUOTE.test(lines[at] ?? ""); at += 1) inner.push(QUOTE.exec(lines[at] ?? "")?.[1] ?? "");
      at -= 1;
      made.push(h("blockquote", null, blocks(inner, depth + 1)));
      continue;
    }
    if (line.includes("|") && TABLE_LINE.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("-")) {
      const heads = cells(line);
      if (heads.length === cells(lines[at + 1] ?? "").length) {
        flush();
        const rows = [];
        for (at += 2; at < lines.length && (lines[at] ?? "").includes("|"); at += 1) rows.push(cells(lines[at] ?? ""));
        at -= 1;
        made.push(h("div", { class: "table", tabIndex: 0 }, h("table", null,
          h("thead", null, h("tr", null, heads.map((cell) => h("th", { dir: "auto" }, inline(cell))))),
          h("tbody", null, rows.map((row) => h("tr", null, heads.map((_, index) => h("td", { dir: "auto" }, inline(row[index] ?? ""))))))) ));
        continue;
      }
    }
    if (ITEM.test(line) && depth < DEEPEST) {
      flush();
      const [list, next] = readList(lines, at, depth);
      made.push(list);
      at = next - 1;
      continue;
    }
    if (!run.length && /^ {4}/.test(line)) {
      const code = [];
      for (; at < lines.length && (/^ {4}/.test(lines[at] ?? "") || !(lines[at] ?? "").trim()); at += 1) code.push(unindented(lines[at] ?? "", 4));
      at -= 1;
      made.push(h(Code, { text: code.join("\n").trimEnd(), language: "" }));
      continue;
    }
    run.push(line);
  }
  flush();
  return made;
}

/** @param {string[]} lines @param {number} start @param {number} depth @returns {[Child, number]} */
function readList(lines, start, depth) {
  const first = ITEM.exec(lines[start] ?? "");
  const indent = first?.[1]?.length ?? 0;
  const ordered = /\d/.test(first?.[2] ?? "");
  /** @type {string[][]} */
  const items = [];
  let at = start;
  for (; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    const item = ITEM.exec(line);
    if (item && (item[1]?.length ?? 0) <= indent + 1) {
      if ((item[1]?.length ?? 0) < indent || /\d/.test(item[2] ?? "") !== ordered) break;
      items.push([item[3] ?? ""]);
    } else if (!line.trim()) {
      const next = lines[at + 1] ?? "";
      if (!/^ {2,}/.test(next) && !(ITEM.test(next) && (ITEM.exec(next)?.[1]?.length ?? 0) >= indent)) break;
      items.at(-1)?.push("");
    } else if (/^\s/.test(line) || item) {
      items.at(-1)?.push(unindented(line, indent + 2));
    } else if (HEADING.test(line) || FENCE.test(line) || RULE.test(line) || QUOTE.test(line)) {
      break;
    } else {
      items.at(-1)?.push(line);
    }
  }
  const number = parseInt(first?.[2] ?? "1", 10);
  const children = items.map((item) => h("li", { dir: "auto" }, tight(blocks(item, depth + 1))));
  return [ordered ? h("ol", { start: Number.isFinite(number) ? number : 1 }, children) : h("ul", null, children), at];
}

/** An item that is one paragraph has no need of one. @param {Child[]} made */
function tight(made) {
  const [only] = made;
  return only && typeof only === "object" && "type" in only && only.type === "p" ? [/** @type {any} */ (only).props.children, ...made.slice(1)] : made;
}

/** @param {string} line @param {number} columns */
function unindented(line, columns) {
  let at = 0;
  while (at < columns && line[at] === " ") at += 1;
  return line.slice(at);
}

/** @param {string} line */
function cells(line) {
  const bare = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return bare.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

/** @param {string} text @param {number} [depth] @returns {Child[]} */
export function inline(text, depth = 0) {
  if (depth > DEEPEST) return [text];
  /** @type {Child[]} */
  const made = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > at) made.push(text.slice(at, match.index));
    at = match.index + match[0].length;
    const [whole, , code, strong, strong2, em, em2, struck, label, target] = match;
    if (code !== undefined) made.push(h("code", null, code.replace(/^ (.*\S.*) $/, "$1")));
    else if (strong !== undefined || strong2 !== undefined) made.push(h("strong", null, inline(strong ?? strong2 ?? "", depth + 1)));
    else if (em !== undefined || em2 !== undefined) made.push(h("em", null, inline(em ?? em2 ?? "", depth + 1)));
    else if (struck !== undefined) made.push(h("del", null, inline(struck, depth + 1)));
    else if (label !== undefined) {
      const address = safe(target ?? "");
      made.push(address ? link(address, inline(label, depth + 1)) : whole);
    } else {
      const bare = whole.replace(/[.,;:!?)\]}*_]+$/, "");
      const address = safe(bare);
      made.push(address ? link(address, [bare]) : bare, whole.slice(bare.length));
    }
  }
  if (at < text.length) made.push(text.slice(at));
  return made;
}

/** @param {string} address @param {Child[]} label */
const link = (address, label) => h("a", { href: address, target: "_blank", rel: "noopener noreferrer nofollow", title: address }, label);

/** Over a line that others can read, a browser has no clipboard. @param {{text: string, label: string}} props */
export function Copy({ text, label }) {
  if (!navigator.clipboard) return null;
  const copy = () => navigator.clipboard.writeText(text).then(() => toast("Copied."), () => toast("The browser does not let this page copy."));
  return h("button", { type: "button", class: "tiny", onClick: copy }, label);
}

/** @param {{text: string, language: string}} props */
function Code({ text, language }) {
  const [colored, setColored] = useState(/** @type {any} */ (null));
  const lines = language === "diff" || language === "patch" || /^(diff --git|--- .*\n\+\+\+ )/.test(text) ? diff(text) : colored ? colored(text, language) : text;
  useEffect(() => {
    if (language) import("./syntax.js").then((module) => setColored(() => module.colored), () => {});
  }, [language]);
  return h("figure", { class: "code" },
    h("figcaption", null, h("span", null, language.slice(0, 30)), h(Copy, { text, label: "Copy" })),
    h("pre", { tabIndex: 0, dir: "ltr" }, h("code", null, lines)));
}

// --- a piece at a time ------------------------------------------------------------------------------------------------

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

/** About a frame: what a slice has changed is laid out and painted before the next one. */
const PAUSE_MS = 16;
/** When this much has been done, the rest is for the next slice. */
const SLICE_MS = 8;

/** @type {(() => void)[]} */
const waiting = [];
let timer = 0;

/** One of many such jobs, each in its turn; what is returned takes it back. @param {() => void} job @returns {() => void} */
export function slice(job) {
  waiting.push(job);
  timer ||= setTimeout(work, PAUSE_MS);
  return () => {
    const place = waiting.indexOf(job);
    if (place >= 0) waiting.splice(place, 1);
  };
}

async function work() {
  const end = performance.now() + SLICE_MS;
  try {
    do {
      waiting.shift()?.();
      await null; // what the job has changed is drawn first, which may make another
    } while (waiting.length && performance.now() < end);
  } finally {
    timer = waiting.length ? setTimeout(work, PAUSE_MS) : 0;
  }
}
