// A real terminal on an agent: xterm.js over the daemon's WebSocket, loaded when the first one is opened. The window of the
// program follows it, as it follows every terminal in which somebody types.

import { h } from "../vendor/preact.mjs";
import { useEffect, useRef, useState } from "../vendor/hooks.mjs";
import { FitAddon } from "../vendor/addon-fit.mjs";
import { Terminal as Xterm } from "../vendor/xterm.mjs";
import { agentPath, pauseAfter, socketUrl } from "./api.js";
import { LeasedKeys } from "./leases.js";
import { safe } from "./links.js";
import { toast } from "./store.js";

const SCROLLBACK = 5000;
const LOOK_MS = 500;
/** Beyond so many bytes that xterm has not drawn, the connection waits: the daemon then sends the newest screen. */
const UNDRAWN_MAX = 2_000_000;

/**
 * xterm puts its rules into <style> elements, which the policy of this page forbids. While it is opened it is given others,
 * whose text becomes a sheet of the document. (Its own `documentOverride` does not reach all that make one.)
 * @param {() => void} act
 */
function withSheets(act) {
  const own = /** @type {any} */ (document);
  own.createElement = (/** @type {string} */ tag, /** @type {any} */ options) => (tag === "style" ? sheetElement() : make(tag, options));
  try {
    act();
  } finally {
    delete own.createElement;
  }
}

const make = Document.prototype.createElement.bind(document);

function sheetElement() {
  const element = make("span");
  element.hidden = true;
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  let text = "";
  Object.defineProperty(element, "textContent", {
    get: () => text,
    set: (/** @type {string} */ rules) => {
      text = rules;
      sheet.replaceSync(rules);
    },
  });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
    HTMLElement.prototype.remove.call(element);
  };
  return element;
}

const setAttribute = Element.prototype.setAttribute;
/** Nor does the policy let it write `style` attributes, as it does for cells of any colour and for marks.
 * @param {string} name @param {string} value */
HTMLSpanElement.prototype.setAttribute = function (name, value) {
  if (name === "style") this.style.cssText = value;
  else setAttribute.call(this, name, value);
};

function loadCss() {
  if (document.querySelector("link[href*=xterm]")) return Promise.resolve();
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = new URL("../vendor/xterm.css", import.meta.url).href;
  return new Promise((resolve) => {
    link.onload = link.onerror = () => resolve(undefined);
    document.head.append(link);
  });
}

/** Keys of one paste, in one message. */
const PASTE_MAX = 1_000_000;

/** A paste is text: it neither ends itself (`ESC[201~`) nor presses keys. @param {string} text */
export const pasted = (text) => text.replace(/(?:\x1b\[|\x9b)20[01]~/g, "").replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g, "");

/** What characters of several code points take is known to an addon, which is loaded when the first of them comes. */
const CLUSTERS = /[\u{10000}-\u{10ffff}\u200d\ufe0f]/u;

class Session {
  /** @param {HTMLElement} box @param {string} agent @param {(state: string) => void} tell @param {() => void} search */
  constructor(box, agent, tell, search) {
    this.agent = agent;
    this.tell = tell;
    this.search = search;
    this.closed = false;
    this.failures = 0;
    this.timer = 0;
    this.undrawn = 0;
    this.socket = /** @type {WebSocket|null} */ (null);
    this.keys = new LeasedKeys();
    this.said = "";
    this.lost = 0;
    this.looking = setInterval(() => this.look(), LOOK_MS);
    this.decoder = new TextDecoder();
    this.order = Promise.resolve();
    this.term = new Xterm({
      allowProposedApi: true,
      fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"),
      fontSize: 13,
      scrollback: SCROLLBACK,
      theme: { background: "#000000", foreground: "#ffffff", cursor: "#ffffff" },
      linkHandler: { activate: (_event, text) => open(text) },
    });
    this.fit = new FitAddon();
    this.term.loadAddon(this.fit);
    withSheets(() => this.term.open(box));
    this.clusters = /** @type {Promise<void>|null} */ (null);
    // Whether characters are joined in one cell is the program's to say (mode 2027): as it counts, so it is drawn.
    this.joining = false;
    for (const final of ["h", "l"]) {
      this.term.parser.registerCsiHandler({ prefix: "?", final }, (params) => {
        if (params.includes(2027)) {
          this.joining = final === "h";
          if (this.term.unicode.versions.includes("15")) this.term.unicode.activeVersion = this.joining ? "15-graphemes" : "15";
        }
        return false;
      });
    }
    this.term.onData((data) => this.send(new TextEncoder().encode(data)));
    this.term.onBinary((data) => this.send(Uint8Array.from(data, (char) => char.charCodeAt(0))));
    this.term.onResize(({ cols, rows }) => this.command({ type: "resize", cols, rows }));
    // The clipboard is a person's: a program may neither read nor write it from here.
    this.term.parser.registerOscHandler(52, () => true);
    this.sizes = new ResizeObserver(() => this.fit.fit());
    this.sizes.observe(box);
    this.fit.fit();
    this.escapes = 0;
    this.term.attachCustomKeyEventHandler((event) => this.ours(event));
    box.addEventListener("paste", (event) => this.paste(event), true);
    this.onBack = () => this.connect();
    addEventListener("line-back", this.onBack);
    this.connect();
    if (!document.activeElement?.matches("input, textarea, select")) this.term.focus(); // where somebody writes meanwhile, they write on
  }

  connect() {
    clearTimeout(this.timer);
    if (this.closed) return;
    this.leave();
    const { cols, rows } = this.term;
    const socket = new WebSocket(socketUrl(`${agentPath(this.agent)}/terminal?keep_size=1&cols=${cols}&rows=${rows}`));
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.failures = 0;
      this.decoder = new TextDecoder();
      this.keys = this.keys.again();
      this.command({ type: "lease", lease: 0 });
      this.tell("live");
    };
    socket.onmessage = (message) => {
      if (typeof message.data === "string") this.news(JSON.parse(message.data));
      else this.draw(new Uint8Array(message.data));
    };
    socket.onclose = () => {
      if (this.socket !== socket) return;
      this.socket = null;
      if (this.ended) return;
      this.failures += 1;
      if (this.keys.sent.length) this.lost += this.keys.drop(); // whether they were typed, nobody knows
      this.tell(this.lost ? this.words("Offline.") : "offline");
      this.timer = setTimeout(() => this.connect(), pauseAfter(this.failures));
    };
  }

  /** @param {any} told */
  news(told) {
    if (told.type === "exit") {
      this.ended = true;
      this.tell(told.exit_code === null ? "the program ended" : `the program ended (${told.exit_code})`);
    } else if (told.type === "lease") {
      this.keys.took(told.lease, told.taken);
      this.command({ type: "lease", lease: told.lease });
      this.look();
    } else if (told.type === "late") {
      this.keys.late(told.late, told.taken);
      if (this.keys.old) this.drop();
      else this.command({ type: "again", late: told.late, gone: false });
      this.flush();
    } else if (told.type === "error") {
      this.tell(told.error?.message ?? "refused");
    }
  }

  /** @param {Uint8Array} bytes */
  draw(bytes) {
    this.undrawn += bytes.length;
    if (!this.clusters && CLUSTERS.test(this.decoder.decode(bytes, { stream: true }))) this.clusters = this.loadClusters();
    const write = () => new Promise((resolve) => this.term.write(bytes, () => {
      this.undrawn -= bytes.length;
      resolve(undefined);
    }));
    if (this.clusters) this.order = this.order.then(() => this.clusters ?? undefined).then(() => void write());
    else void write();
    if (this.undrawn > UNDRAWN_MAX) {
      // It is attached again when this is drawn: what it missed comes as one screen.
      this.leave();
      this.term.write("", () => this.connect());
    }
  }

  async loadClusters() {
    try {
      const { UnicodeGraphemesAddon } = await import("../vendor/addon-unicode-graphemes.mjs");
      this.term.loadAddon(new UnicodeGraphemesAddon());
      this.term.unicode.activeVersion = this.joining ? "15-graphemes" : "15";
    } catch {
      // Widths are then those of single code points.
    }
  }

  /** Whether a key goes to the program: the one for the search does not, nor Tab behind Esc, Esc, by which the browser
   * moves on from here. @param {KeyboardEvent} event */
  ours(event) {
    if (event.type !== "keydown" || event.key === "Shift" || event.isComposing) return true;
    if (event.ctrlKey && event.shiftKey && event.key.toLowerCase() === "f") {
      event.preventDefault();
      this.search();
      return false;
    }
    const plain = !event.ctrlKey && !event.altKey && !event.metaKey;
    const leaves = plain && event.key === "Tab" && this.escapes > 1;
    this.escapes = plain && event.key === "Escape" && !event.repeat ? this.escapes + 1 : 0;
    return !leaves;
  }

  /** @param {ClipboardEvent} event */
  paste(event) {
    event.preventDefault();
    event.stopPropagation();
    const text = pasted(event.clipboardData?.getData("text/plain") ?? "");
    if (text.length * 3 > PASTE_MAX && new Blob([text]).size > PASTE_MAX) toast("A paste has at most 1 MB; send a file instead.");
    else if (text) this.term.paste(text);
  }

  /** @param {Uint8Array<ArrayBuffer>} bytes */
  send(bytes) {
    if (this.socket?.readyState !== WebSocket.OPEN) return;
    if (!this.keys.silent) this.lost = 0; // that was read
    this.keys.type(bytes);
    this.flush();
  }

  flush() {
    for (let piece; this.socket?.readyState === WebSocket.OPEN && (piece = this.keys.piece()); ) this.socket.send(piece);
  }

  /** What the line is like; what was typed long ago is typed no more, nor what was typed behind it. */
  look() {
    if (this.keys.old) this.drop();
    this.flush();
    if (!this.socket || this.ended) return;
    const said = this.words(this.keys.silent && this.keys.lease !== null ? "No word from the daemon: keys wait for the line." : "") || "live";
    if (said !== this.said) this.tell(said);
    this.said = said;
  }

  /** Nor is the end of a paste that has begun. */
  drop() {
    this.lost += this.keys.drop();
    this.command({ type: "again", late: this.keys.lateness, gone: true });
  }

  /** @param {string} line */
  words(line) {
    const lost = this.lost ? `Keys that you typed (${this.lost} B) may not have arrived: look at the screen.` : "";
    return [line, lost].filter(Boolean).join(" ");
  }

  /** @param {any} command */
  command(command) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(command));
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
    clearInterval(this.looking);
    removeEventListener("line-back", this.onBack);
    this.sizes.disconnect();
    this.leave();
    this.term.dispose();
  }
}

/** A link goes nowhere but to http and https, and only when it is asked for. @param {string} address */
function open(address) {
  const target = safe(address);
  if (target && confirm(`Open ${target}?`)) window.open(target, "_blank", "noopener,noreferrer");
}

/** @param {{agent: string}} props */
export function Terminal({ agent }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const session = useRef(/** @type {Session|null} */ (null));
  const [state, setState] = useState("connecting");
  const [Find, setFind] = useState(/** @type {any} */ (null));
  const search = () => void import("./find.js").then((module) => setFind(() => module.Find), () => toast("A part of the page could not be loaded."));
  useEffect(() => {
    let left = false;
    void loadCss().then(() => {
      if (left || !box.current) return;
      session.current = new Session(box.current, agent, setState, search);
    });
    return () => {
      left = true;
      session.current?.close();
      session.current = null;
    };
  }, [agent]);
  const done = () => {
    setFind(null);
    session.current?.term.focus();
  };
  return h("section", { class: "terminal", "aria-label": `Terminal of ${agent}` },
    h("div", { class: "xterm-box", ref: box, "data-keys": "own" }),
    h("footer", { class: "under" },
      h("span", { class: "quiet", role: "status" }, state === "live" ? "You type here; the program's window then has this size. Esc, Esc, Tab leads out." : state === "offline" ? "Offline: it is connected again." : state),
      Find ? h(Find, { term: session.current?.term, done }) : h("button", { type: "button", class: "tiny", onClick: search }, "Search")));
}
