// What a device sees that is not let in.

import { h } from "../vendor/preact.mjs";
import { useEffect } from "../vendor/hooks.mjs";
import { forget } from "./kept.js";

export default function Out() {
  useEffect(forget, []);
  return h("main", { class: "out", tabIndex: -1 },
    h("h1", null, "synapsed"),
    h("p", null, "This device is not let in, or was removed."),
    h("p", null, "On the machine where your agents run: ", h("code", null, "synapsectl web"), ", or for a phone ", h("code", null, "synapsectl web --phone"), "."));
}
