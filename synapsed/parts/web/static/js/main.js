// The page: who may see it, where one is in it, and what stands around the rest.

import { h, render } from "../vendor/preact.mjs";
import { useEffect, useState } from "../vendor/hooks.mjs";
import { ApiError, ROOT, get, post } from "./api.js";
import { Agents } from "./agents.js";
import { Inbox, useWaiting } from "./inbox.js";
import { put, toast, useStore } from "./store.js";
import { again, start } from "./stream.js";

/** From this width on the desk is shown, with a list at the left. */
const DESK = matchMedia("(min-width: 900px)");

// --- the way in ------------------------------------------------------------------------------------------------------

/** @returns {Promise<import("./store.js").Me>} */
async function whoAmI() {
  try {
    return await get("/web/me");
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    const who = await get("/whoami");
    return { device: null, rights: who.standing === "person" ? ["look", "answer", "type", "manage"] : [], push_key: null, version: "", page: "" };
  }
}

/** A one-time code stands in the fragment, which no server and no log is told; it is gone before it is used. */
function takeCode() {
  const found = /[#&]code=([^&]+)/.exec(location.hash);
  if (!found) return "";
  history.replaceState(null, "", `${ROOT}/`);
  put({ route: "" });
  return decodeURIComponent(found[1] ?? "");
}

async function enter() {
  const code = takeCode();
  try {
    if (code) await post("/web/session", { code });
  } catch (error) {
    if (error instanceof ApiError) toast(error.code === "OFFLINE" ? error.message : `This code does not open: ${error.message}`);
  }
  for (let wait = 500; ; wait = Math.min(wait * 2, 15_000)) {
    try {
      put({ me: await whoAmI(), door: "in" });
      start();
      return;
    } catch (error) {
      if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
        put({ door: "out" });
        return;
      }
      put({ line: "offline" });
      import("./kept.js").then((kept) => kept.bring(), () => {});
      await new Promise((resolve) => {
        setTimeout(resolve, wait);
        addEventListener("online", resolve, { once: true });
      });
    }
  }
}

// --- where one is ----------------------------------------------------------------------------------------------------

addEventListener("hashchange", () => {
  if (location.hash.includes("code=")) void enter();
  else put({ route: location.hash });
});

/** @param {string} hash @returns {{view: string, name: string, rest: string}} */
export function place(hash) {
  const [, view = "", name = "", rest = ""] = hash.split("/");
  let decoded = "";
  try {
    decoded = decodeURIComponent(name);
  } catch {
    // A broken address is that of nobody.
  }
  return { view: view.split("?")[0] || "home", name: decoded, rest };
}

/** @type {Map<string, Promise<void>>} */
const sheets = new Map();

/** Rules which the first view of a phone has no need of. @param {"views"|"lists"} name */
export function rules(name) {
  const known = sheets.get(name) ?? new Promise((resolve) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = new URL(`../${name}.css`, import.meta.url).href;
    link.onload = link.onerror = () => resolve();
    document.head.append(link);
  });
  sheets.set(name, known);
  return known;
}

/** @type {Record<string, () => Promise<any>>} */
const VIEWS = {
  desk: () => import("./desk.js"),
  out: () => import("./out.js"),
  agent: () => import("./agent.js"),
  events: () => import("./events.js"),
  usage: () => import("./usage.js"),
  history: () => import("./history.js"),
  side: () => import("./side.js"),
  start: () => import("./start.js"),
  settings: () => import("./settings.js"),
};

/** A view that is loaded when it is first opened. @param {{view: string, name: string, clock: number, desk: boolean}} props */
export function Later({ view, name, clock, desk }) {
  const [loaded, setLoaded] = useState(/** @type {Record<string, any>} */ ({}));
  const [failed, setFailed] = useState(false);
  const live = useStore((state) => state.line === "live");
  const load = VIEWS[view];
  useEffect(() => {
    if (!load || loaded[view]) return;
    Promise.all([load(), rules("views"), view === "desk" || view === "agent" || rules("lists")]).then(([module]) => setLoaded((before) => ({ ...before, [view]: module.default })), () => setFailed(true));
  }, [view, failed && live]); // again when the line is back, and not while it is there
  const View = loaded[view];
  if (View) return h(View, { name, clock, desk });
  if (!load) return h("p", { class: "empty" }, "There is no such page. ", h("a", { href: "#/" }, "Home"));
  return h("p", { class: "empty", "aria-busy": "true" }, failed ? "This part could not be loaded. " : "", failed ? h("button", { type: "button", onClick: () => location.reload() }, "Load again") : null);
}

// --- what stands around ----------------------------------------------------------------------------------------------

/** Time goes on in "5 min": once in ten seconds is enough, and not while nobody looks. */
export function useClock() {
  const [clock, setClock] = useState(Date.now());
  useEffect(() => {
    const tick = () => {
      if (!document.hidden) setClock(Date.now());
    };
    const timer = setInterval(tick, 10_000);
    document.addEventListener("visibilitychange", tick);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", tick);
    };
  }, []);
  return clock;
}

function useDesk() {
  const [desk, setDesk] = useState(DESK.matches);
  useEffect(() => {
    const look = () => setDesk(DESK.matches);
    DESK.addEventListener("change", look);
    return () => DESK.removeEventListener("change", look);
  }, []);
  return desk;
}

export function Line() {
  const line = useStore((state) => state.line);
  if (line === "live") return null;
  const words = line === "offline" ? "Offline. What is shown may be old." : "Connecting…";
  return h("p", { class: `line l-${line}`, role: "status" }, words, " ", line === "offline" ? h("button", { type: "button", class: "tiny", onClick: () => again(0) }, "Try now") : null);
}

function Toast() {
  const text = useStore((state) => state.toast);
  return h("div", { class: "toast", role: "status", "aria-live": "polite", hidden: !text }, text);
}

export function Nav() {
  const route = useStore((state) => state.route);
  const view = place(route).view;
  const waiting = useWaiting();
  useEffect(() => {
    document.title = waiting ? `(${waiting}) synapsed` : "synapsed";
  }, [waiting]);
  /** @param {string} to @param {string} label @param {number} [badge] */
  const link = (to, label, badge = 0) =>
    h("a", { href: `#/${to}`, "aria-current": view === (to || "home") ? "page" : null }, label, badge ? h("b", { class: "badge", "aria-label": `${badge} need you` }, badge) : null);
  return h("nav", { class: "views", "aria-label": "Views" }, link("", "Inbox", waiting), link("events", "Events"), link("history", "History"), link("usage", "Usage"), link("settings", "Settings"));
}

function Phone() {
  const route = useStore((state) => state.route);
  const clock = useClock();
  const { view, name } = place(route);
  const shown = view === "home"
    ? h("main", { class: "home", tabIndex: -1 }, h("h1", null, "synapsed"), h(Inbox, { clock }), h("h2", null, "Agents"), h(Agents, { clock }))
    : h("main", { class: "view", tabIndex: -1 }, h(Later, { view, name, clock, desk: false }));
  return h("div", { class: "phone" }, h(Line, null), shown, view === "agent" || view === "side" ? null : h(Nav, null));
}

function App() {
  const door = useStore((state) => state.door);
  const desk = useDesk();
  const Newer = useStore((state) => state.Newer);
  if (door === "out") return h("div", null, h(Later, { view: "out", name: "", clock: 0, desk }), h(Toast, null));
  if (door === "unknown") return h("div", null, h(Line, null), h("p", { class: "quiet boot" }, "synapsed"));
  return h("div", null, desk ? h(Later, { view: "desk", name: "", clock: 0, desk }) : h(Phone, null), Newer && h(Newer, null), h(Toast, null));
}

// Under a proxy's path without its last slash the worker would not be this page's.
if (location.pathname !== `${ROOT}/`) history.replaceState(null, "", `${ROOT}/${location.hash}`);

addEventListener("keydown", () => import("./focus.js").catch(() => {}), { once: true });

const theme = localStorage.getItem("theme");
if (theme) document.documentElement.dataset.theme = theme;

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
root.textContent = "";
render(h(App, null), root);
// The worker brings the rest of the page: the lists come first.
void enter().then(() => {
  if (!("serviceWorker" in navigator) || !isSecureContext) return;
  const address = `${ROOT}/web/sw.js`;
  // The one script that is named by a text; the policy of this page lets no other be made.
  const makers = /** @type {any} */ (window).trustedTypes?.createPolicy("page", { createScriptURL: () => address });
  navigator.serviceWorker.register(makers ? makers.createScriptURL(address) : address, { scope: `${ROOT}/` }).catch(() => {});
});
