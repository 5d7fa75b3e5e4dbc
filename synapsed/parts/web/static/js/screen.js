// An agent's screen as rows of the page: the daemon sends the cells that changed, here they become spans. The program
// keeps its size; what is wider than the page is scrolled to.

import { h } from "../vendor/preact.mjs";
import { useEffect, useLayoutEffect, useRef, useState } from "../vendor/hooks.mjs";
import { agentPath, pauseAfter, socketUrl } from "./api.js";

const COLOR = /^#[0-9a-f]{6}$/;

/** @typedef {[number, string|string[], string?, string?, number?, string?]} Run */

/** @param {HTMLElement} span @param {Run} run */
function paint(span, run) {
  const [, , foreground = "", background = "", flags = 0, underline = ""] = run;
  const style = span.style;
  if (COLOR.test(foreground)) style.color = foreground;
  if (COLOR.test(background)) style.backgroundColor = background;
  if (flags & 1) style.fontWeight = "bold";
  if (flags & 2) style.fontStyle = "italic";
  const lines = [flags & 4 ? "underline" : "", flags & 8 ? "line-through" : "", flags & 16 ? "overline" : ""].filter(Boolean).join(" ");
  if (lines) style.textDecorationLine = lines;
  if (flags & 64) style.textDecorationStyle = "double";
  if (flags & 128) style.textDecorationStyle = "wavy";
  if (COLOR.test(underline)) style.textDecorationColor = underline;
  if (flags & 32) span.classList.add("blink");
}

/** The spans of one row. @param {Run[]} runs */
export function spans(runs) {
  const made = document.createDocumentFragment();
  for (const run of runs) {
    const [columns, text] = run;
    if (typeof text === "string" && run.length === 2) {
      made.append(text);
      continue;
    }
    const span = document.createElement("span");
    if (typeof text === "string") span.textContent = text;
    else {
      // Another font may draw these, in a width of its own: each gets the columns that it has, and all of them together
      // theirs, as the browser rounds the width of each.
      span.style.width = `${columns}ch`;
      for (const character of text) {
        const cell = document.createElement("span");
        cell.className = columns > text.length ? "w2" : "w1";
        cell.textContent = character;
        span.append(cell);
      }
    }
    paint(span, run);
    made.append(span);
  }
  return made;
}

/** A screen in `box`, kept as the daemon tells it, until it is closed. */
export class LiveScreen {
  /** @param {HTMLElement} box @param {string} agent @param {(told: {line: boolean, still: string|null, cols: number, rows: number, title: string}) => void} tell */
  constructor(box, agent, tell) {
    this.box = box;
    this.agent = agent;
    this.tell = tell;
    this.rows = /** @type {HTMLElement[]} */ ([]);
    this.cursor = document.createElement("span");
    this.cursor.className = "cursor";
    this.state = { line: false, still: /** @type {string|null} */ (null), cols: 0, rows: 0, title: "" };
    this.failures = 0;
    this.timer = 0;
    this.closed = false;
    this.socket = /** @type {WebSocket|null} */ (null);
    this.onShown = () => {
      if (document.hidden) this.leave();
      else if (!this.socket) this.connect();
    };
    document.addEventListener("visibilitychange", this.onShown);
    this.onBack = () => this.connect();
    addEventListener("line-back", this.onBack);
    this.connect();
  }

  connect() {
    clearTimeout(this.timer);
    if (this.closed || document.hidden) return;
    this.leave();
    const socket = new WebSocket(socketUrl(`${agentPath(this.agent)}/screen/live`));
    this.socket = socket;
    socket.onopen = () => {
      this.failures = 0;
    };
    socket.onmessage = (message) => this.take(JSON.parse(message.data));
    socket.onclose = () => {
      if (this.socket !== socket) return;
      this.socket = null;
      this.say({ line: false });
      this.failures += 1;
      this.timer = setTimeout(() => this.connect(), pauseAfter(this.failures));
    };
  }

  leave() {
    const socket = this.socket;
    this.socket = null;
    if (socket) {
      socket.onclose = null;
      socket.close();
    }
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.onShown);
    removeEventListener("line-back", this.onBack);
    this.leave();
  }

  /** @param {Partial<LiveScreen["state"]>} change */
  say(change) {
    const before = this.state;
    this.state = { ...before, ...change };
    if (Object.keys(change).some((key) => /** @type {any} */ (before)[key] !== /** @type {any} */ (change)[key])) this.tell(this.state);
  }

  /** @param {any} told */
  take(told) {
    if (told.type !== "screen") return;
    if (told.cols === undefined) {
      this.say({ line: true, still: told.still });
      return;
    }
    const first = this.rows.length === 0;
    const below = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 24;
    if (told.whole) this.begin(told);
    for (const [index, runs] of Object.entries(told.lines)) {
      const row = this.rows[Number(index)];
      if (row) row.replaceChildren(spans(/** @type {Run[]} */ (runs)));
    }
    this.place(told.cursor);
    this.say({ line: true, still: told.still, cols: told.cols, rows: told.rows, title: told.title });
    if (first || below) this.follow(told);
  }

  /** @param {any} told */
  begin(told) {
    this.rows = Array.from({ length: told.rows }, () => {
      const row = document.createElement("div");
      row.className = "r";
      return row;
    });
    this.box.style.setProperty("--cols", String(told.cols));
    const page = document.createElement("div");
    page.className = "cells";
    if (COLOR.test(told.foreground)) this.box.style.color = told.foreground;
    if (COLOR.test(told.background)) this.box.style.backgroundColor = told.background;
    page.append(...this.rows, this.cursor);
    this.box.replaceChildren(page);
  }

  /** @param {[number, number]|null} cursor */
  place(cursor) {
    this.cursor.hidden = !cursor;
    if (cursor) {
      this.cursor.style.setProperty("--row", String(cursor[0]));
      this.cursor.style.setProperty("--col", String(cursor[1]));
    }
  }

  /** Keep what is being written in sight, unless somebody has scrolled away. @param {any} told */
  follow(told) {
    let last = told.cursor?.[0] ?? 0;
    for (let index = this.rows.length - 1; index > last; index -= 1) {
      if (this.rows[index]?.textContent?.trim()) {
        last = index;
        break;
      }
    }
    const row = this.rows[last];
    if (row) this.box.scrollTop = Math.max(0, row.offsetTop + row.offsetHeight + 8 - this.box.clientHeight);
  }
}

const SIZES = [6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18];
/** Where nobody has chosen a size, all columns are shown that can be read. */
const LEAST = 6;
const MOST = 15;

/** The largest size in which so many columns have room in the box. @param {HTMLElement} box @param {number} cols */
function fitting(box, cols) {
  const probe = document.createElement("div");
  probe.style.width = `${cols}ch`;
  box.append(probe);
  const style = getComputedStyle(box);
  const room = box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  let size = MOST;
  for (; size > LEAST; size -= 0.5) {
    probe.style.fontSize = `${size}px`;
    if (probe.offsetWidth <= room) break;
  }
  probe.remove();
  return size;
}

/** @param {{agent: string, desk: boolean}} props */
export function Screen({ agent, desk }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const [told, setTold] = useState(/** @type {any} */ ({ line: false, still: null, cols: 0, rows: 0, title: "" }));
  const kept = Number(localStorage.getItem(desk ? "screen-desk" : "screen-phone"));
  const [chosen, setChosen] = useState(SIZES.includes(kept) ? kept : 0);
  const [fit, setFit] = useState(desk ? 13 : 11);
  const size = chosen || fit;
  useEffect(() => {
    if (!box.current) return undefined;
    const live = new LiveScreen(box.current, agent, setTold);
    return () => live.close();
  }, [agent]);
  useLayoutEffect(() => {
    const pane = box.current;
    if (chosen || !pane || !told.cols) return undefined;
    const sizes = new ResizeObserver(() => setFit(fitting(pane, told.cols)));
    sizes.observe(pane);
    return () => sizes.disconnect();
  }, [chosen, told.cols]);
  /** @param {number} by */
  const resize = (by) => {
    const next = by > 0 ? SIZES.find((one) => one > size) : by < 0 ? SIZES.findLast((one) => one < size) : 0;
    setChosen(next ?? size);
    try {
      localStorage.setItem(desk ? "screen-desk" : "screen-phone", String(next ?? size));
    } catch {
      // There is no room: the size is gone with the page.
    }
  };
  return h("section", { class: "screen", "aria-label": `Screen of ${agent}` },
    h("div", { class: "rows", ref: box, tabIndex: 0, dir: "ltr", role: "img", "aria-label": `What ${agent} shows`, style: { fontSize: `${size}px` } }),
    h("footer", { class: "under" },
      h("span", { class: "quiet" }, told.cols ? `${told.cols} × ${told.rows}` : "", told.still ? ` · ${told.still}` : "", told.line || !told.cols ? "" : " · not live"),
      h("span", null,
        chosen ? h("button", { type: "button", class: "tiny", onClick: () => resize(0), "aria-label": "Fit all columns" }, "Fit") : null,
        h("button", { type: "button", class: "tiny", onClick: () => resize(-1), "aria-label": "A− smaller" }, "A−"),
        h("button", { type: "button", class: "tiny", onClick: () => resize(1), "aria-label": "A+ larger" }, "A+"))));
}
