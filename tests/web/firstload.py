"""How much comes first, as a browser counts it: for the tests here and for `python -m bench page`."""

from typing import Final

__all__ = ["PHONE_KB", "SIZES", "TERMINAL_KB"]

PHONE_KB, TERMINAL_KB = 25, 120
"""The most that the files of a phone's first load may have, and those of a desk with an agent and its terminal."""

SIZES: Final = """async () => {
  // What every page loads last, behind its lists.
  const last = (one) => one.name.endsWith("/elsewhere.js");
  await new Promise((done) => {
    const watch = new PerformanceObserver((list) => list.getEntries().some(last) && done());
    watch.observe({ type: "resource", buffered: true });
  });
  const all = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  // Last, behind the lists and what they need, a page loads what waits for a newer one, and for none.
  const rest = (one) => /\\/(newer|kept)\\.js$/.test(one.name);
  const files = all.filter((one) => /^\\/(web\\/[^?]*\\.[a-z]+)?$/.test(new URL(one.name).pathname) && !rest(one));
  const sum = (list, what) => list.reduce((total, one) => total + one[what], 0);
  return [sum(files, "encodedBodySize"), sum(all, "transferSize"), all.length];
}"""
"""Bytes of the page's files, packed as they came; bytes of all, with headers and answers; how many there were."""
