// A newer page than this one: it is brought whole, and takes this one's place when nothing is begun and not sent.

import { h } from "../vendor/preact.mjs";
import { useEffect, useRef, useState } from "../vendor/hooks.mjs";
import { ROOT, posting } from "./api.js";
import { rules } from "./main.js";
import { now, unsent, useStore } from "./store.js";

/** Which page this is: its files stand below an address of their own. */
const OWN = /\/web\/([0-9a-f]{16})\//.exec(import.meta.url)?.[1] ?? "";
const AGAIN_MS = 60_000;

/** Whether a page that is loaded now would be that one, with all that it is made of. @param {string} wanted */
async function isWhole(wanted) {
  const worker = await navigator.serviceWorker?.getRegistration().catch(() => undefined);
  await worker?.update();
  const next = worker?.installing ?? worker?.waiting;
  while (next && next.state !== "activated" && next.state !== "redundant") {
    await new Promise((resolve) => next.addEventListener("statechange", resolve, { once: true }));
  }
  const answer = await fetch(`${ROOT}/`, { cache: "no-cache" });
  return (await answer.text()).includes(`web/${wanted}/`);
}

/** Whether nothing would be lost: no text, no file, no tap, no terminal. */
function isFree() {
  const fields = /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("textarea, input:not([type=radio], [type=checkbox])"));
  const answering = [...now().given.values()].some((given) => given.state === "sending" || given.state === "retrying");
  return !answering && !posting() && !unsent.size && ![...fields].some((field) => field.value) && !document.querySelector(".xterm");
}

export function Newer() {
  const me = useStore((state) => state.me);
  const route = useStore((state) => state.route);
  const [ready, setReady] = useState("");
  const before = useRef(route);
  const there = me?.page && OWN && me.page !== OWN ? me.page : "";
  const load = () => {
    history.replaceState({ newer: there }, "");
    location.reload();
  };
  // Once: where the newer page does not come by that, it is left to the person.
  const loadIfFree = () => {
    if (isFree() && history.state?.newer !== there) load();
  };
  useEffect(() => {
    if (!there || ready === there) return undefined;
    let timer = 0;
    let over = false;
    const bring = async () => {
      const whole = await isWhole(there).catch(() => false);
      await rules("views");
      if (over) return;
      if (whole) setReady(there);
      else timer = setTimeout(bring, AGAIN_MS);
    };
    void bring();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [me, ready]);
  useEffect(() => {
    const elsewhere = before.current !== route;
    before.current = route;
    if (!ready || ready !== there) return undefined;
    // Nobody has touched it since it was opened, or somebody goes elsewhere in it, or nobody sees it.
    if (navigator.userActivation?.hasBeenActive === false || elsewhere || document.hidden) loadIfFree();
    const hide = () => document.hidden && loadIfFree();
    document.addEventListener("visibilitychange", hide);
    return () => document.removeEventListener("visibilitychange", hide);
  }, [ready, there, route]);
  if (!ready || ready !== there) return null;
  return h("div", { class: "toast newer", role: "status" }, "synapsed was updated. ", h("button", { type: "button", class: "tiny", onClick: load }, "Load the new page"));
}
