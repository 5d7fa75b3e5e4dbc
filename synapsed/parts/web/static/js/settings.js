// Light or dark, notifications on this device, and who this device is.

import { h } from "../vendor/preact.mjs";
import { useEffect, useState } from "../vendor/hooks.mjs";
import { ApiError, post, remove } from "./api.js";
import { toast, useStore } from "./store.js";

/** @param {string} text */
function decoded(text) {
  const raw = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(raw, (char) => char.charCodeAt(0));
}

/** Whether the subscription is for pushes of this daemon's key: another one's are refused by the push service.
 * @param {PushSubscription|null} found @param {string|null|undefined} key */
function signs(found, key) {
  const own = found?.options.applicationServerKey;
  return Boolean(own && key) && String(new Uint8Array(own ?? [])) === String(decoded(key ?? ""));
}

/** Whether this device is told of what waits, and how that is changed. */
function Push() {
  const me = useStore((state) => state.me);
  const [on, setOn] = useState(/** @type {boolean|null} */ (null));
  const [busy, setBusy] = useState(false);
  const can = "serviceWorker" in navigator && "PushManager" in window && isSecureContext;
  useEffect(() => {
    if (can) navigator.serviceWorker.ready.then((worker) => worker.pushManager.getSubscription()).then((found) => setOn(Boolean(me?.device?.push) && signs(found, me?.push_key)), () => setOn(false));
  }, []);
  if (!can) return h("p", { class: "quiet" }, isSecureContext ? "This browser has no notifications. On an iPhone, add the page to the home screen first." : "Notifications need https, or localhost.");
  if (!me?.push_key) return h("p", { class: "quiet" }, "The daemon sends no notifications to browsers.");
  /** The switch shows what the daemon has taken, not what was tapped. @param {Event} event */
  const turn = async (event) => {
    if (event.target instanceof HTMLInputElement) event.target.checked = on === true;
    if (busy) return;
    setBusy(true);
    try {
      const worker = await navigator.serviceWorker.ready;
      const found = await worker.pushManager.getSubscription();
      if (on) {
        await remove("/web/push");
        await found?.unsubscribe();
        setOn(false);
        return;
      }
      if (!me.device) {
        toast("Only a paired device is told: 'synapsectl web' pairs this browser.");
        return;
      }
      if ((await Notification.requestPermission()) !== "granted") {
        toast("The browser does not allow notifications of this page.");
        return;
      }
      if (found && !signs(found, me.push_key)) await found.unsubscribe();
      const made = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: decoded(me.push_key ?? "") });
      const told = made.toJSON();
      await post("/web/push", { endpoint: told.endpoint, keys: told.keys });
      setOn(true);
    } catch (error) {
      toast(error instanceof ApiError || error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  };
  return h("label", { class: "switch" }, h("input", { type: "checkbox", role: "switch", checked: on === true, "aria-busy": busy, disabled: on === null, onChange: turn }), " Tell me on this device when an agent waits for me");
}

/** @param {{desk: boolean}} props */
export default function Settings({ desk }) {
  const me = useStore((state) => state.me);
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? "");
  const choose = (/** @type {string} */ next) => {
    setTheme(next);
    if (next) document.documentElement.dataset.theme = next;
    else delete document.documentElement.dataset.theme;
    try {
      if (next) localStorage.setItem("theme", next);
      else localStorage.removeItem("theme");
    } catch {
      // There is no room: the colours are gone with the page.
    }
  };
  return h("div", { class: "list-view settings" },
    h("header", { class: "bar" }, desk ? null : h("a", { href: "#/", class: "back", "aria-label": "Back" }, "‹"), h(desk ? "h2" : "h1", null, "Settings")),
    h("fieldset", null, h("legend", null, "Colours"), [["", "as the system has them"], ["light", "light"], ["dark", "dark"]].map(([value, label]) => h("label", null, h("input", { type: "radio", name: "theme", value, checked: theme === value, onChange: () => choose(value ?? "") }), ` ${label}`))),
    h("fieldset", null, h("legend", null, "Notifications"), h(Push, null)),
    h("fieldset", null, h("legend", null, "This device"),
      h("p", null, me?.device ? me.device.name : "This machine"),
      h("p", { class: "quiet" }, me?.rights.length ? `It may ${me.rights.join(", ")}.` : "It may nothing."),
      me?.version ? h("p", { class: "quiet" }, `synapsed ${me.version}`) : null));
}
