"""The page makes visible what nobody sees just as everything else does (`synapsed.shared.visible`)."""

import json

import pytest
from playwright.async_api import expect

from synapsed.model.task import PromptOption
from synapsed.shared.visible import visible
from tests.web.conftest import CARD, Devices, Worker, module, question

pytestmark = pytest.mark.night

_SHOWN = "([address, texts]) => import(address).then(({ visible }) => texts.map((text) => visible(text)))"
_AROUND = ("a{}b", "❤{}b", "ا{}ا", "{}", "1{}\u20e3", "❤{}❤", "\ufe0f{}\U0001f308")


async def test_it_is_the_same_function(devices: Devices):
    page = await devices.open()
    codes = [*range(0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xE1000)]
    interesting = [code for code in codes if visible(f"a{chr(code)}b") != f"a{chr(code)}b"]
    texts = [around.format(chr(code)) for around in _AROUND for code in interesting]
    texts += ["".join(chr(code) for code in codes[at : at + 1000]) for at in range(0, len(codes), 1000)]
    assert len(interesting) > 4000
    assert await page.evaluate(_SHOWN, [module("js/visible.js"), texts]) == [visible(text) for text in texts]
    assert json.loads(json.dumps(texts)) == texts


async def test_nothing_is_hidden_in_what_is_approved(devices: Devices, worker: Worker):
    options = [PromptOption(key="1", label="Yes\u200b"), PromptOption(key="2", label="No, \u202enever")]
    asked = question("Run rm \u202e-rf\u2066 ~?", options=options, type="permission")
    await worker.ask("ann", asked)
    page = await devices.open()
    card = page.locator(CARD)
    await expect(card.locator(".question")).to_have_text(r"Run rm \u202e-rf\u2066 ~?")
    shown = await card.evaluate("(card) => card.outerHTML")
    assert not any(character in shown for character in "\u202e\u2066\u200b")
