// What turns have used: by agent, by day, where programs tell it.

import { h } from "../vendor/preact.mjs";
import { useEffect, useState } from "../vendor/hooks.mjs";
import { ApiError, get } from "./api.js";
import { useStore } from "./store.js";

/** @param {number|null|undefined} value */
function count(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1000) return String(value);
  if (value < 1e6) return `${(value / 1e3).toFixed(value < 1e4 ? 1 : 0)} k`;
  return `${(value / 1e6).toFixed(value < 1e7 ? 2 : 1)} M`;
}

const TITLES = ["turns", "input", "cache read", "cache write", "output", "cost"];
/** @type {[string, number][]} */
const SPANS = [["today", 1], ["7 days", 7], ["30 days", 30], ["all", 0]];

/** @param {{desk: boolean}} props */
export default function Usage({ desk }) {
  const agents = useStore((state) => state.agents);
  const [by, setBy] = useState("agent");
  const [days, setDays] = useState(7);
  const [told, setTold] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let left = false;
    const since = new Date();
    since.setHours(0, 0, 0, 0);
    since.setDate(since.getDate() - days + 1);
    const from = days ? `&since=${encodeURIComponent(since.toISOString())}` : "";
    setTold(null);
    setProblem("");
    get(`/control/usage?by=${by}&limit=200${from}`).then((found) => left || setTold(found), (error) => left || setProblem(error instanceof ApiError ? error.message : String(error)));
    return () => {
      left = true;
    };
  }, [by, days]);
  const names = new Map((agents ?? []).map((one) => [one.id, one.name]));
  const most = Math.max(1, ...(told?.rows ?? []).map((/** @type {any} */ row) => row.output_tokens ?? 0));
  /** @param {any} row @param {string} name */
  const cells = (row, name) => [
    h("th", { scope: "row" }, name),
    ...[row.turns, count(row.input_tokens), count(row.cache_read_tokens), count(row.cache_write_tokens), count(row.output_tokens), row.cost_usd === null ? "–" : `$${row.cost_usd.toFixed(2)}`]
      .map((value, at) => h("td", { "data-title": TITLES[at] }, value)),
    h("td", { class: "meter" }, h("meter", { min: 0, max: most, value: row.output_tokens ?? 0, "aria-label": `Output of ${name}` })),
  ];
  return h("div", { class: "list-view" },
    h("header", { class: "bar" },
      desk ? null : h("a", { href: "#/", class: "back", "aria-label": "Back" }, "‹"),
      h(desk ? "h2" : "h1", null, "Usage"),
      h("div", { class: "filters" },
        h("select", { "aria-label": "By", value: by, onChange: (/** @type {any} */ event) => setBy(event.target.value) }, ["agent", "day"].map((one) => h("option", { value: one }, `by ${one}`))),
        h("select", { "aria-label": "Since", value: String(days), onChange: (/** @type {any} */ event) => setDays(Number(event.target.value)) }, SPANS.map(([name, value]) => h("option", { value }, name))))),
    problem ? h("p", { class: "problem", role: "alert" }, problem) : null,
    !told && !problem ? h("p", { class: "empty", "aria-busy": "true" }) : null,
    told && !told.rows.length ? h("p", { class: "empty" }, "No program has reported usage for this time.") : null,
    told?.rows.length ? h("div", { class: "table", tabIndex: 0, role: "region", "aria-label": "Usage" }, h("table", { class: "figures" },
      h("thead", null, h("tr", null, [by, ...TITLES].map((title) => h("th", { scope: "col" }, title)), h("td", null))),
      h("tbody", null, told.rows.map((/** @type {any} */ row) => h("tr", { key: row.agent ?? row.day }, cells(row, by === "agent" ? names.get(row.agent) ?? row.agent ?? "–" : row.day ?? "–")))),
      h("tfoot", null, h("tr", null, cells(told.total, "all"))))) : null,
    told && !told.complete ? h("p", { class: "quiet" }, "The newest turns are not counted yet.") : null);
}
