// Starting an agent: of a profile, in a folder in which there is one already. For anything else there is synapsectl.

import { h } from "../vendor/preact.mjs";
import { useEffect, useRef, useState } from "../vendor/hooks.mjs";
import { ApiError, get, post } from "./api.js";
import { may, useStore } from "./store.js";
import { readAgents } from "./stream.js";

/** @param {{desk: boolean}} props */
export default function Start({ desk }) {
  const agents = useStore((state) => state.agents);
  const [profiles, setProfiles] = useState(/** @type {any[]|null} */ (null));
  const [profile, setProfile] = useState("");
  const [cwd, setCwd] = useState("");
  const [name, setName] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  // The name under which it may have been started already: no answer came.
  const tried = useRef("");
  useEffect(() => { tried.current = ""; }, [profile, cwd, name]);
  useEffect(() => {
    get("/control/profiles").then(setProfiles, (error) => setProblem(error instanceof Error ? error.message : String(error)));
  }, []);
  const folders = [...new Set((agents ?? []).map((one) => one.cwd))].sort();
  const known = new Set((agents ?? []).map((one) => one.type));
  // Those that there are agents of come first: their programs are there.
  const sorted = [...(profiles ?? [])].sort((one, other) => Number(known.has(other.name)) - Number(known.has(one.name)) || one.name.localeCompare(other.name));
  const chosen = { profile: profile || sorted[0]?.name || "", cwd: cwd || folders[0] || "" };
  const taken = new Set((agents ?? []).map((one) => one.name));
  const free = [chosen.profile, ...Array.from({ length: 99 }, (_, at) => `${chosen.profile}-${at + 2}`)].find((one) => !taken.has(one)) ?? "";
  const start = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setProblem("");
    try {
      // Under a name, so that it is started once however often it is sent.
      const again = tried.current;
      const given = again || name.trim() || free;
      tried.current = given;
      await post("/control/start", { ...chosen, name: given }).catch((error) => {
        if (!(again && error instanceof ApiError && error.code === "NAME_TAKEN")) throw error;
      });
      tried.current = "";
      await readAgents();
      location.hash = `#/agent/${encodeURIComponent(given)}`;
    } catch (error) {
      if (!(error instanceof ApiError && error.unsure)) tried.current = "";
      setProblem(error instanceof ApiError ? error.message : String(error));
    }
    setBusy(false);
  };
  /** @param {string} label @param {string} value @param {string[]} values @param {(value: string) => void} set */
  const select = (label, value, values, set) => h("label", null, h("span", null, label), h("select", { value, onChange: (/** @type {any} */ event) => set(event.target.value) }, values.map((one) => h("option", { value: one }, one))));
  return h("div", { class: "list-view starting" },
    h("header", { class: "bar" }, desk ? null : h("a", { href: "#/", class: "back", "aria-label": "Back" }, "‹"), h(desk ? "h2" : "h1", null, "Start an agent")),
    !may("manage") ? h("p", { class: "noright" }, "This device may not start agents.")
      : agents && !folders.length ? h("p", { class: "empty" }, "Start the first one in a terminal: ", h("code", null, "synapsectl start claude"))
      : h("form", { onSubmit: start },
        select("Profile", chosen.profile, sorted.map((one) => one.name), setProfile),
        select("Folder", chosen.cwd, folders, setCwd),
        h("label", null, h("span", null, "Name"), h("input", { value: name, placeholder: free, maxLength: 64, autocapitalize: "off", spellcheck: false, onInput: (/** @type {any} */ event) => setName(event.target.value) })),
        problem ? h("p", { class: "problem", role: "alert" }, problem) : null,
        h("button", { type: "submit", class: "yes", disabled: !profiles || !free, "aria-disabled": busy || null }, busy ? "Starting…" : "Start")));
}
