"""Every cell of a screen stands in its column of the page, whatever font draws it: measured in a browser."""

import json
from typing import Any

import pytest
from playwright.async_api import expect

from synapsed.model.picture import Rows
from synapsed.terminal.emulated_screen import Screen
from tests.golden.replay import CASES
from tests.web.conftest import DESK, PHONE, Devices, module

pytestmark = [pytest.mark.night, pytest.mark.timeout(400)]

HARD = (
    "⏸ plan mode on (shift+tab to cycle)",
    "⎿ git commit && echo ⚠️ done && echo ❤️ ok",
    "한국어 \u1100\u1161 ᄀ jamo then text",
    "🇩🇪 flags 🏴󠁧󠁢󠁥󠁮󠁧󠁿 and 👩‍👩‍👧 families, text",
    "e\u0301\u0302 combining  \ufdfd wide ligature, text",
    "─━│┃┌┐└┘ ▀▄█▌▐ ░▒▓ ⠋⠙⠹ ✻ ✽ ● ○ ◉ → ← ⏎ ⌘ text",
    "עברית العربية ไทย हिन्दी then text",
)


def screens() -> list[Rows]:
    hard = Screen(80, len(HARD))
    hard.feed("\r\n".join(HARD).encode())
    found = [hard.page_rows()]
    for case in CASES:
        screen = Screen(*case.record["size"])
        screen.feed(case.raw)
        found.append(screen.page_rows())
    return found


_MISPLACED = """async ([address, screens]) => {
  const { spans } = await import(address);
  const box = document.createElement("div");
  box.className = "rows";
  box.style.fontSize = "13px";
  document.body.replaceChildren(box);
  await document.fonts.ready;
  const wrong = [];
  for (const { cols, lines } of screens) {
    const page = document.createElement("div");
    page.className = "cells";
    page.style.setProperty("--cols", cols);
    const ruler = document.createElement("div");
    ruler.className = "r";
    ruler.textContent = "x".repeat(100);
    const rows = lines.map((runs) => {
      const row = document.createElement("div");
      row.className = "r";
      row.append(spans(runs));
      return row;
    });
    page.append(ruler, ...rows);
    box.replaceChildren(page);
    const range = document.createRange();
    const at = (node) => (range.selectNodeContents(node), node.nodeType === 3 ? range : node).getBoundingClientRect();
    const column = at(ruler.firstChild).width / 100;
    rows.forEach((row, index) => {
      const start = row.getBoundingClientRect().left;
      const check = (node, text, from, columns, within) => {
        const where = at(node);
        if (node.textContent !== text || Math.abs((where.left - start) / column - from) > within
          || Math.abs(where.width / column - columns) > 0.1) wrong.push([index, from, text, where.left, where.width]);
      };
      let from = 0;
      [...row.childNodes].forEach((node, place) => {
        const [columns, text] = lines[index][place];
        check(node, [text].flat().join(""), from, columns, 0.1);
        const each = columns / text.length;
        const cells = Array.isArray(text) ? text : [];
        cells.forEach((cell, at) => check(node.childNodes[at], cell, from + at * each, each, 0.3));
        from += columns;
      });
      if (row.childNodes.length !== lines[index].length) wrong.push([index, "nodes"]);
    });
  }
  return wrong;
}"""
"""Rows whose nodes do not stand where their cells do."""


@pytest.mark.parametrize("device", [PHONE, DESK], ids=["phone", "desk"])
async def test_each_cell_stands_in_its_column(devices: Devices, device: dict[str, Any]):
    page = await devices.open("/#/agent/ann", **device)
    await expect(page.locator(".screen .rows")).to_be_visible()
    told = [{"cols": one.cols, "lines": [json.loads(line) for line in one.lines]} for one in screens()]
    assert len(told) > 10
    assert await page.evaluate(_MISPLACED, [module("js/screen.js"), told]) == []
