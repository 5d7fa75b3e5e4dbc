// What the keys of the desk do, as `?` shows it.

import { rules } from "./main.js";

/** @type {[string, string][]} */
const HELP = [
  ["?", "these keys"],
  ["j  k", "next, previous agent or question"],
  ["Enter", "open"],
  ["/", "find an agent"],
  ["g i", "inbox"],
  ["g e", "events"],
  ["g h", "history"],
  ["g u", "usage"],
  ["y  n", "yes, no to the chosen question (the first one if none is chosen)"],
  ["1 … 9", "its options"],
  ["m", "write to the agent"],
  ["t", "type in its terminal"],
  ["s", "side by side"],
  ["Ctrl Shift F", "search in a terminal"],
  ["Esc Esc Tab", "leave a terminal"],
  ["Esc", "leave a field; then show all agents"],
];

/** Shows it, or takes it away. */
export async function help() {
  await rules("lists");
  const old = document.querySelector("dialog.help");
  if (old) {
    old.remove();
    return;
  }
  const dialog = document.createElement("dialog");
  dialog.className = "help";
  dialog.setAttribute("aria-label", "Keys");
  const list = document.createElement("dl");
  for (const [keys, does] of HELP) {
    const term = document.createElement("dt");
    for (const key of keys.split(/ +/)) {
      const kbd = document.createElement("kbd");
      kbd.textContent = key;
      term.append(kbd, " ");
    }
    const meaning = document.createElement("dd");
    meaning.textContent = does;
    list.append(term, meaning);
  }
  const title = document.createElement("h2");
  title.textContent = "Keys";
  dialog.append(title, list);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", () => dialog.close());
  dialog.addEventListener("keydown", (event) => {
    if (!dialog.open) return; // it has the focus for a moment longer: the key is the page's
    if (event.key === "?") dialog.close();
    event.stopPropagation();
  });
  document.body.append(dialog);
  dialog.showModal();
}
