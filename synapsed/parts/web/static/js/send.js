// The box for a message, with files, and the keys of a terminal for those who may press them.

import { h } from "../vendor/preact.mjs";
import { useEffect, useRef, useState } from "../vendor/hooks.mjs";
import { ApiError, ROOT, agentPath, newKey, post } from "./api.js";
import { may, toast, unsent } from "./store.js";
import { composes } from "./words.js";

const FILES_MAX = 64;
/** Bytes of all files together: a body has at most 10 MB, and base64 makes four of three. */
const BYTES_MAX = 7_000_000;
const TRIES = 6;

/** @typedef {{text: string, files: File[], key: string}} Draft  `key`: under which it was given, if nobody knows whether it has got there */

/** What was begun and not sent, by agent. @type {Map<string, Draft>} */
const drafts = new Map();
/** @type {Draft} */
const NONE = { text: "", files: [], key: "" };

/** Texts outlive the page, the last of so many agents: in one list, as other windows keep theirs there, too. */
const KEPT = `drafts ${ROOT}`;
const KEPT_MOST = 20;
const KEPT_LENGTH = 50_000;
const KEPT_AFTER_MS = 400;
let keeping = 0;
/** @type {Set<string>} */
const changed = new Set();

/** @returns {string[][]} agent, text, key of each */
function kept() {
  try {
    const told = JSON.parse(localStorage.getItem(KEPT) ?? "[]");
    return Array.isArray(told) ? told.filter((one) => Array.isArray(one) && one.every((part) => typeof part === "string")) : [];
  } catch {
    return [];
  }
}

function keepTexts() {
  clearTimeout(keeping);
  keeping = 0;
  if (!changed.size) return;
  const all = kept().filter(([agent = ""]) => !changed.has(agent));
  for (const agent of changed) {
    const { text, files, key } = drafts.get(agent) ?? NONE;
    if (text && text.length <= KEPT_LENGTH) all.push([agent, text, files.length ? "" : key]);
  }
  changed.clear();
  try {
    localStorage.setItem(KEPT, JSON.stringify(all.slice(-KEPT_MOST)));
  } catch {
    // There is no room: they are gone with the page.
  }
}
addEventListener("pagehide", keepTexts);

/** @param {string} agent @returns {Draft} */
function draftOf(agent) {
  const known = drafts.get(agent);
  if (known) return known;
  const [, text = "", key = ""] = kept().find(([name]) => name === agent) ?? [];
  return text ? { text, files: [], key } : NONE;
}

/** @param {File} file */
async function asPart(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return { type: "file", file: { name: file.name.slice(0, 200), mimeType: file.type || "application/octet-stream", bytes: btoa(text) } };
}

/** @param {{agent: string, desk: boolean}} props */
export function Send({ agent, desk }) {
  const [draft, setDraft] = useState(() => draftOf(agent));
  const [busy, setBusy] = useState("");
  const area = useRef(/** @type {HTMLTextAreaElement|null} */ (null));
  const picker = useRef(/** @type {HTMLInputElement|null} */ (null));
  useEffect(() => setDraft(draftOf(agent)), [agent]);
  useEffect(() => {
    if (!area.current) return;
    area.current.style.height = "auto";
    area.current.style.height = `${Math.min(area.current.scrollHeight, 220)}px`;
  }, [draft.text]);
  const keep = (/** @type {Draft} */ next) => {
    drafts.set(agent, next);
    changed.add(agent);
    if (!next.text || next.key) keepTexts(); // what was sent is no draft any more, and what is sent is known by its key
    else keeping ||= setTimeout(keepTexts, KEPT_AFTER_MS);
    if (next.text || next.files.length) unsent.add(agent);
    else unsent.delete(agent);
    setDraft(next);
  };
  if (!may("answer") && !may("send")) return h("p", { class: "noright" }, "This device may look, not send.");
  const add = (/** @type {Iterable<File>} */ more) => {
    const files = [...draft.files, ...more].slice(0, FILES_MAX);
    if (files.reduce((sum, file) => sum + file.size, 0) > BYTES_MAX) toast("All files together have at most 7 MB.");
    else keep({ ...draft, files, key: "" });
  };
  const send = async () => {
    const { text, files } = draft;
    if ((!text.trim() && !files.length) || busy) return;
    const key = draft.key || newKey();
    keep({ ...draft, key });
    setBusy("sending…");
    area.current?.focus(); // now: when it is sent, somebody may be writing elsewhere
    try {
      const parts = [...(text.trim() ? [{ type: "text", text }] : []), ...(await Promise.all(files.map(asPart)))];
      for (let tries = 1; ; tries += 1) {
        try {
          await post(`${agentPath(agent)}/tasks/send`, { message: { role: "user", parts } }, key);
          break;
        } catch (error) {
          if (!(error instanceof ApiError) || !error.unsure || tries >= TRIES) throw error;
          setBusy("bad line: it is sent again…");
          await new Promise((resolve) => setTimeout(resolve, 1000 * tries));
        }
      }
      if (draftOf(agent).key === key) keep(NONE); // else something else was typed meanwhile
    } catch (error) {
      const present = draftOf(agent);
      if (present.key === key && !(error instanceof ApiError && error.unsure)) keep({ ...present, key: "" });
      toast(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy("");
    }
  };
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && !composes(event) && (desk ? !event.shiftKey : event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void send();
    }
  };
  return h("form", { class: "send", onSubmit: (/** @type {Event} */ event) => { event.preventDefault(); void send(); },
    onDragOver: (/** @type {DragEvent} */ event) => event.preventDefault(),
    onDrop: (/** @type {DragEvent} */ event) => { event.preventDefault(); add(event.dataTransfer?.files ?? []); } },
    draft.files.length ? h("ul", { class: "files" }, draft.files.map((file, index) => h("li", null, h("span", null, file.name), h("button", { type: "button", class: "tiny", "aria-label": `Leave out ${file.name}`, onClick: () => { keep({ ...draft, key: "", files: draft.files.filter((_, at) => at !== index) }); area.current?.focus(); } }, "×")))) : null,
    h("div", { class: "line" },
      h("button", { type: "button", class: "attach quiet", "aria-label": "Add files", title: "Add files", onClick: () => picker.current?.click() }, "+"),
      h("input", { type: "file", multiple: true, hidden: true, ref: picker, onChange: (/** @type {any} */ event) => { add(event.target.files); event.target.value = ""; } }),
      h("textarea", { ref: area, rows: 1, id: "message", dir: "auto", placeholder: `Message to ${agent}`, "aria-label": `Message to ${agent}`, value: draft.text, enterKeyHint: desk ? "send" : "enter", onInput: (/** @type {any} */ event) => keep({ ...draft, key: "", text: event.target.value }), onKeyDown: onKey,
        onPaste: (/** @type {ClipboardEvent} */ event) => { const files = event.clipboardData?.files; if (files?.length) { event.preventDefault(); add(files); } } }),
      h("button", { type: "submit", class: "yes", disabled: Boolean(busy) || (!draft.text.trim() && !draft.files.length) }, "Send")),
    busy ? h("p", { class: "quiet", role: "status" }, busy) : null);
}

/** @type {[string, string, string][]} */
const KEYS = [["Esc", "Esc", "Esc"], ["Tab", "Tab", "Tab"], ["Left", "←", "Left"], ["Up", "↑", "Up"], ["Down", "↓", "Down"], ["Right", "→", "Right"], ["Enter", "⏎", "Enter"], ["C-c", "^C", "Control C"]];

/** @param {{agent: string}} props */
export function Keys({ agent }) {
  if (!may("type")) return null;
  const press = async (/** @type {string} */ key) => {
    try {
      await post(`/control${agentPath(agent)}/keys`, { keys: [key] }, newKey());
    } catch (error) {
      if (error instanceof ApiError) toast(error.message);
    }
  };
  return h("div", { class: "keys", role: "group", "aria-label": "Keys of the terminal" },
    KEYS.map(([key, sign, name]) => h("button", { type: "button", key, "aria-label": name, onClick: () => press(key) }, sign)));
}
