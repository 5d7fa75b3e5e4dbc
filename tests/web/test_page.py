"""The page on a phone and at a desk, in front of the fake control."""

import asyncio
import contextlib
import re

import pytest
from playwright.async_api import Route, WebSocketRoute, expect

from synapsectl.inbox.model import InboxModel
from synapsed.model.agent import Activity
from synapsed.model.events import ActivityChanged, AttentionChanged
from tests.fakes.clock import until
from tests.web.conftest import CARD, DESK, PHONE, Devices, Worker, module, question, read

pytestmark = pytest.mark.night


async def test_who_is_there(devices: Devices, worker: Worker):
    page = await devices.open()
    await expect(page.locator(".agents .name")).to_have_text(["ann", "bob"])
    await expect(page.get_by_text("Nobody needs you.")).to_be_visible()
    await worker.does("synapse-codex-8120", Activity.BUSY, "hook: a tool runs")
    await expect(page.locator(".agents .dot").first).to_have_attribute("aria-label", "busy")
    await expect(page.locator(".agents .name")).to_have_text(["bob", "ann"])


async def test_a_command_stands_there_once_and_the_name_on_one_row(devices: Devices, worker: Worker):
    worker.control.add("payments-api", "claude", 8140, cwd="/home/me/customers/of-a-name-that-is-long")
    command = "find . -name '*.py' | xargs sed -i s/a/b/"
    rows = ["Bash command", "find . -name '*.py' |", " xargs sed -i s/a/b/", "Do you want to proceed?"]
    for agent, asked, runs in (("payments-api", "\n".join(rows), command), ("bob", "Run ls -l?", "ls -l")):
        await worker.ask(agent, question(asked, key=agent, command=runs), item=agent)
    page = await devices.open()
    await expect(page.locator(".command")).to_have_text([command, "ls -l"])
    await expect(page.locator(".question")).to_have_text(["Bash command\nDo you want to proceed?", "Run ls -l?"])
    heights = await page.evaluate("[...document.querySelectorAll('.card .who')].map((name) => name.offsetHeight)")
    assert heights[0] == heights[1]


async def test_whatever_needs_a_person_is_counted_as_the_inbox_of_a_terminal_counts_it(
    devices: Devices, worker: Worker
):
    for number, kind in enumerate(("unreadable", "unreadable", "limit")):
        told = AttentionChanged(id=f"u{number}", state="opened", kind=kind, question="It is not understood.")
        await worker.control.tell(worker.control.directory.resolve("bob"), told)
    task = await worker.ask("ann", question())
    page = await devices.open()
    status, items = await worker.api.json(worker.api.unix, "GET", "/inbox")
    terminal = InboxModel(hold=3.0)
    terminal.told(items, 0.0)
    assert (status, terminal.waiting) == (200, 4)
    await expect(page).to_have_title("(4) synapsed")
    await expect(page.locator(".badge")).to_have_text("4")
    await page.get_by_role("button", name="Approve").tap()
    await expect(page).to_have_title("(3) synapsed")  # while it is still shown what came of it
    await worker.seen_to("ann", "i1", task, by="person", where="http")
    await expect(page.locator(".badge")).to_have_text("3")


async def test_an_answer_in_words_of_ones_own(devices: Devices, worker: Worker):
    page = await devices.open()
    task = await worker.ask("ann", question())
    await page.get_by_role("button", name="In your own words").tap()
    await page.get_by_label("Your answer").fill("only in /tmp <b>please</b>")
    await page.get_by_role("button", name="Answer").tap()
    await expect(page.locator(".outcome")).to_contain_text("only in /tmp <b>please</b>")  # what is sent, before it is
    await until(lambda: worker.answers == [(task, "only in /tmp <b>please</b>", "p1")])


async def test_two_devices_at_once(devices: Devices, worker: Worker):
    one, two = await devices.open(), await devices.open("/", **DESK)
    task = await worker.ask("ann", question())
    for page in (one, two):
        await expect(page.locator(CARD)).to_have_count(1)
    await one.get_by_role("button", name="Approve").tap()
    await two.get_by_role("button", name="Deny").click()
    await expect(one.locator(".outcome")).to_contain_text("taken")
    await expect(two.locator(".outcome")).to_contain_text(re.compile("answered"))
    taken = [answer for answer in worker.answers if answer[1] == "1"]
    assert taken == [(task, "1", "p1")]
    assert (await worker.control.tasks.find(task)).status != "input_required"


async def test_who_was_faster_is_told(devices: Devices, worker: Worker):
    page = await devices.open()
    task = await worker.ask("ann", question())
    await expect(page.locator(CARD)).to_have_count(1)
    await worker.seen_to("ann", "i1", task, by="person", where="terminal")
    await expect(page.locator(".outcome")).to_have_text(re.compile("answered by a person at its terminal"))
    await expect(page.get_by_role("button", name="Approve")).to_have_count(0)


_SHOWN_LONG = """
const soon = window.setTimeout;
window.setTimeout = (run, after, ...given) => soon(run, 5000 < after && after <= 6050 ? 100 * after : after, ...given);
"""
"""What became of an answer is shown for ten minutes in place of six seconds, which a busy machine may sleep over."""


async def test_who_was_faster_is_told_where_the_list_is_newer_than_the_events(devices: Devices, worker: Worker):
    held: list[str | bytes] = []
    follows, release = asyncio.Event(), asyncio.Event()

    async def hold(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def keep(message: str | bytes) -> None:
            follows.set()
            (socket.send if release.is_set() else held.append)(message)

        server.on_message(keep)
        await release.wait()
        for message in held:
            socket.send(message)

    page = await devices.open()
    await page.add_init_script(_SHOWN_LONG)
    await page.route_web_socket(re.compile("/events"), hold)
    await page.reload()
    while not follows.is_set():  # what is told before the daemon has its connection does not come by it
        await worker.control.tell("synapse-codex-8120", ActivityChanged(activity=Activity.READY, evidence="as ever"))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(follows.wait(), 1.0)
    task = await worker.ask("ann", question())
    read = f"() => import('{module('js/stream.js')}').then((stream) => stream.readInbox())"
    await page.evaluate(read)
    await expect(page.locator(CARD)).to_have_count(1)
    await worker.seen_to("ann", "i1", task, by="person", where="terminal")
    await page.evaluate(read)
    await expect(page.locator(CARD)).to_have_count(0)
    release.set()
    await expect(page.locator(".outcome")).to_have_text(re.compile("answered by a person at its terminal"))


async def test_a_tap_on_a_bad_line_is_sent_once_when_a_phone_that_slept_is_back(devices: Devices, worker: Worker):
    page = await devices.open()
    task = await worker.ask("ann", question())
    await expect(page.locator(CARD)).to_have_count(1)
    await page.context.set_offline(True)
    await expect(page.get_by_text("Offline. What is shown may be old.")).to_be_visible()
    await page.get_by_role("button", name="Approve").tap()
    await expect(page.locator(".outcome")).to_contain_text("bad line: it is sent again")
    assert worker.answers == []
    browser = await page.context.new_cdp_session(page)
    await browser.send("Page.setWebLifecycleState", {"state": "frozen"})  # it sleeps for ten minutes, by its clock
    other = await worker.ask("bob", question("And this?", key="p2"), item="i2")
    await browser.send("Page.setWebLifecycleState", {"state": "active"})
    await page.evaluate("() => { const real = Date.now; Date.now = () => real() + 600_000; }")
    await page.context.set_offline(False)
    await expect(page.locator(".outcome")).to_contain_text("taken")
    await expect(page.get_by_text("Offline.")).to_have_count(0)
    assert worker.answers == [(task, "1", "p1")]
    await page.locator(CARD).filter(has_text="And this?").get_by_role("button", name="Approve").tap()
    await expect(page.locator(".outcome").last).to_contain_text("taken")
    assert worker.answers == [(task, "1", "p1"), (other, "1", "p2")]


async def test_an_answer_whose_word_was_lost_counts_once(devices: Devices, worker: Worker):
    page = await devices.open()
    task = await worker.ask("ann", question())
    lost = []

    async def lose(route):
        if not lost:
            lost.append((await route.fetch()).status)
            await route.abort()
        else:
            await route.continue_()

    await page.route("**/input", lose)
    await page.get_by_role("button", name="Approve").tap()
    await expect(page.locator(".outcome")).to_contain_text(re.compile("taken|no longer asked"))
    assert lost == [200]
    assert [answer for answer in worker.answers if (await worker.control.tasks.find(task)).prompt] == []
    assert worker.answers[0] == (task, "1", "p1")


async def test_an_answer_that_is_refused_can_be_given_again(devices: Devices, worker: Worker):
    page = await devices.open()
    task = await worker.ask("ann", question())
    refusal = {"error": {"code": "NOT_TAKEN", "message": "It still asks the same.", "details": {}}}
    await page.route("**/input", lambda route: route.fulfill(status=409, json=refusal), times=1)
    await page.get_by_role("button", name="Approve").tap()
    await expect(page.get_by_role("alert")).to_have_text("It still asks the same.")
    await page.get_by_role("button", name="Approve").tap()
    await expect(page.locator(".outcome")).to_contain_text("taken")
    assert worker.answers == [(task, "1", "p1")]


async def test_a_conversation_as_it_is_written(devices: Devices, worker: Worker):
    page = await devices.open("/#/agent/ann", **DESK)
    await page.get_by_label("Message to ann").fill("What is it?")
    await page.get_by_label("Message to ann").press("Enter")
    task = page.locator(".task")
    await expect(task.locator(".said")).to_have_text("What is it?")
    task_id = await task.get_attribute("data-task")
    assert task_id is not None
    await worker.control.say(task_id, "# A title\n\nSome **bold** ", append=False)
    await expect(task.locator(".answer h3")).to_have_text("A title")
    await worker.control.say(task_id, "words and `code`.\n\n- one\n- two\n", append=True)
    await expect(task.locator(".answer li")).to_have_text(["one", "two"])
    await expect(task.locator(".answer strong")).to_have_text("bold")
    text = (
        "A link to [there](https://example.org/x) and [nowhere](javascript:alert(1)).\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |"
    )
    await worker.control.complete(task_id, text)
    await expect(task.locator(".answer a")).to_have_attribute("href", "https://example.org/x")
    await expect(task.locator(".answer td")).to_have_text(["1", "2"])
    await expect(task.locator(".answer")).to_contain_text("[nowhere](javascript:alert(1))")
    await expect(task.locator(".state")).to_have_text("completed")


async def test_the_screen_is_shown_as_it_changes(devices: Devices, worker: Worker):
    page = await devices.open("/#/agent/ann")
    await expect(page.locator(".r")).to_have_text(["the screen"])
    worker.control.rows = ['[[2,"> "],[4,["日","本"],"#ff0000"],[2,"ok","","#00ff00",1]]', '[[3,"new"]]']
    worker.control.watches.note()
    await expect(page.locator(".r")).to_have_text(["> 日本ok", "new"])
    red = page.locator(".w2").first
    await expect(red).to_have_css("color", "rgb(255, 0, 0)")
    sizes = await page.evaluate(
        """() => {
          const [wide] = document.querySelectorAll(".w2");
          const probe = document.createElement("span");
          probe.style.display = "inline-block";
          probe.style.width = "2ch";
          document.querySelector(".cells").append(probe);
          return [wide.getBoundingClientRect().width, probe.getBoundingClientRect().width];
        }"""
    )
    assert abs(sizes[0] - sizes[1]) < 0.1
    assert worker.control.attachments == []


async def test_keys_of_the_terminal(devices: Devices, worker: Worker):
    page = await devices.open("/#/agent/ann")
    await page.get_by_role("button", name="Esc", exact=True).tap()
    await page.get_by_role("button", name="Control C").tap()
    await until(lambda: sum(call[0] == "press" for call in worker.control.calls) == 2, "two keys are pressed")
    pressed = [call[2:] for call in worker.control.calls if call[0] == "press"]
    assert pressed == [("Esc",), ("C-c",)]


async def test_a_device_that_was_removed(devices: Devices, worker: Worker):
    page = await devices.open()
    await expect(page.locator(".agents .name")).to_have_count(2)
    refusal = {"error": {"code": "UNAUTHORIZED", "message": "no", "details": {}}}
    await page.route("**/whoami", lambda route: route.fulfill(status=401, json=refusal))
    await page.route_web_socket("**/events*", lambda socket: socket.close())
    await page.evaluate("dispatchEvent(new Event('online'))")
    await expect(page.get_by_text("This device is not let in")).to_be_visible()


async def test_the_keyboard_at_the_desk(devices: Devices, worker: Worker):
    task = await worker.ask("ann", question())
    page = await devices.open("/", **DESK)
    await expect(page.locator(CARD)).to_have_count(1)
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await read(page)
    await page.keyboard.press("y")
    await expect(page.locator(".outcome")).to_contain_text("taken")
    assert worker.answers == [(task, "1", "p1")]
    await page.keyboard.press("g")
    await page.keyboard.press("e")
    await expect(page.get_by_role("heading", name="Events")).to_be_visible()
    await expect(page.locator(".events .type").first).to_be_visible()
    await page.keyboard.press("/")
    await page.keyboard.type("bob")
    await expect(page.locator(".left .agents .name")).to_have_text(["bob"])
    await page.keyboard.press("Escape")
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await expect(page.locator(".right .bar h2")).to_have_text("bob")


_AT_ONCE = """
new MutationObserver((_, watch) => {
  if (!document.querySelector(".desk")) return;
  watch.disconnect();
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "?", bubbles: true }));
}).observe(document, { childList: true, subtree: true });
"""
"""Presses a key in the moment in which the desk is in the document, before anything is painted."""


async def test_a_key_pressed_as_the_desk_comes_up_counts(devices: Devices, worker: Worker):
    page = await (await devices.context(**DESK)).new_page()
    await page.add_init_script(_AT_ONCE)
    await page.goto(devices.url)
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()


async def test_what_is_typed_before_the_keys_are_there_is_found(devices: Devices, worker: Worker):
    page = await (await devices.context(**DESK)).new_page()
    there = asyncio.Event()

    async def late(route: Route) -> None:
        await there.wait()
        await route.continue_()

    await page.route("**/js/keys.js", late)
    await page.goto(devices.url)
    names = page.locator(".left .agents .name")
    await expect(names).to_have_text(["ann", "bob"])
    await page.keyboard.press("/")
    await page.keyboard.type("bob")
    there.set()
    await expect(names).to_have_text(["bob"])
    assert await page.locator("#find").input_value() == "bob"


async def test_no_key_is_lost_on_the_way(devices: Devices, worker: Worker):
    page = await devices.open("/", **DESK)
    names = page.locator(".left .agents .name")
    await expect(names).to_have_text(["ann", "bob"])
    for wanted in ("bob", "ann"):
        await page.keyboard.press("/")  # takes the place of what was looked for
        await page.keyboard.type(wanted)
        await expect(names).to_have_text([wanted])
        await page.keyboard.press("Escape")
        assert await page.locator("#find").input_value() == wanted, "the field says what the list shows"
    await page.keyboard.press("Escape")
    await expect(names).to_have_count(2)
    await page.keyboard.press("g")
    await page.keyboard.press("j")  # goes nowhere with g, and is no key of its own lost
    await page.keyboard.press("Enter")
    await expect(page.locator(".right .bar h2")).to_have_text("ann")
    await page.evaluate("() => { const real = Date.now; Date.now = () => real() + 60_000; }")
    await page.keyboard.press("g")
    await page.evaluate("() => { const real = Date.now; Date.now = () => real() + 60_000; }")
    await page.keyboard.press("i")  # a minute later, as on a machine that stood still
    await expect(page.get_by_role("heading", name="Inbox")).to_be_visible()


@pytest.mark.parametrize("moves", [True, False], ids=["", "a browser that cannot move what has the focus"])
async def test_a_row_that_moves_keeps_the_focus(devices: Devices, worker: Worker, *, moves: bool):
    page = await (await devices.context(**DESK)).new_page()
    if not moves:
        await page.add_init_script("delete Element.prototype.moveBefore;")
    await page.goto(devices.url)
    names = page.locator(".left .agents .name")
    await expect(names).to_have_text(["ann", "bob"])
    await page.keyboard.press("j")
    for first, other in (("bob", "ann"), ("ann", "bob")):
        agent_id = "synapse-codex-8120" if first == "bob" else "synapse-claude-8100"
        rest = "synapse-claude-8100" if first == "bob" else "synapse-codex-8120"
        await worker.does(agent_id, Activity.BUSY, "works")
        await worker.does(rest, Activity.READY, "rests")
        await expect(names).to_have_text([first, other])
        assert await page.evaluate("document.activeElement.querySelector('.name')?.textContent") == "ann"


async def test_what_was_settled_is_passed_over(devices: Devices, worker: Worker):
    first = await worker.ask("ann", question("First?"))
    second = await worker.ask("bob", question("Second?", key="p2"), item="i2")
    page = await devices.open("/", **DESK)
    await page.add_init_script(_SHOWN_LONG)
    await page.reload()
    await expect(page.locator(".card .question")).to_have_text(["First?", "Second?"])
    await page.keyboard.press("j")
    await worker.seen_to("ann", "i1", first, by="person", where="terminal")
    await expect(page.locator(".card.done .outcome")).to_be_visible()
    await page.keyboard.press("n")
    await expect(page.locator(".toast")).to_have_text("This is settled. j goes to what waits next.")
    await page.keyboard.press("j")
    await expect(page.locator(".card:focus-within .question")).to_have_text("Second?")
    await page.keyboard.press("k")
    await expect(page.locator(".card:focus-within .question")).to_have_text("Second?")
    await read(page)
    await page.keyboard.press("n")
    await expect(page.locator(".card:focus-within .outcome")).to_contain_text("taken")
    assert worker.answers == [(second, "3", "p2")]


_TYPES_ON = """(writes) => {
  const field = document.querySelector(".card textarea");
  const press = () => field.dispatchEvent(new KeyboardEvent("keydown", { key: "x", bubbles: true }));
  const goesOn = writes ? setInterval(press, 100) : 0;
  new MutationObserver((_, watch) => {
    if (document.querySelectorAll(writes ? ".card textarea" : ".card").length > (writes ? 0 : 1)) return;
    watch.disconnect();
    clearInterval(goesOn);
    for (const key of ["y", "2"]) document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  }).observe(document.body, { childList: true, subtree: true });
}"""
"""Two keys in the moment in which the field, where somebody types on, or the first of two questions is gone."""


_TOASTS = """() => {
  const toast = document.querySelector(".toast");
  window.said = new Promise((done) => new MutationObserver(() => toast.textContent && done(toast.textContent))
    .observe(toast, { childList: true, characterData: true, subtree: true }));
}"""
"""The next one is kept: it goes after five seconds."""


@pytest.mark.parametrize(("writes", "told"), [(True, "What you were writing to is gone"), (False, "press again")])
async def test_a_key_is_for_the_question_that_was_read(devices: Devices, worker: Worker, *, writes: bool, told: str):
    """It is settled elsewhere as somebody is about to press `y`, or writes: the next question gets none of that."""
    first = await worker.ask("ann", question("First?"))
    second = await worker.ask("bob", question("Second?", key="p2"), item="i2")
    page = await devices.open("/", **DESK)
    await expect(page.locator(".card .question")).to_have_text(["First?", "Second?"])
    if writes:
        await page.locator(CARD).first.get_by_role("button", name="In your own words").click()
        await page.locator(".card textarea").press_sequentially("no")
    await page.evaluate(_TYPES_ON, writes)
    if writes:
        await page.keyboard.type(", ")
    await page.evaluate(_TOASTS)
    await worker.seen_to("ann", "i1", first)
    await expect(page.locator(".card .question")).to_have_text(["Second?"])
    assert told in await page.evaluate("window.said.then((said) => said)")
    assert worker.answers == []
    await read(page)
    await page.keyboard.press("j")
    await page.keyboard.press("y")
    await expect(page.locator(".outcome")).to_contain_text("taken")
    assert worker.answers == [(second, "1", "p2")]


async def test_sixty_agents_without_a_stutter(devices: Devices, worker: Worker):
    for number in range(60):
        worker.control.add(f"agent-{number:02}", "dummy", 8200 + number)
    page = await devices.open("/", **DESK)
    await expect(page.locator(".left .agents .name")).to_have_count(62)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.evaluate("() => { for (const row of document.querySelectorAll('.left .row')) row.before = true; }")
    for turn in range(10):
        activity = Activity.BUSY if turn % 2 == 0 else Activity.READY
        for number in range(60):
            await worker.does(f"synapse-dummy-{8200 + number}", activity, f"turn {turn}")
    await worker.does("synapse-dummy-8230", Activity.BUSY, "the last")
    await expect(page.locator(".left .says").filter(has_text="the last")).to_have_count(1)
    kept = await page.evaluate("() => [...document.querySelectorAll('.left .row')].filter((row) => row.before).length")
    assert kept == 62, "rows are kept, and moved"
    lists = [url for url in asked if url.endswith("/agents")]
    assert len(lists) <= 12, "601 events are no reason to ask 601 times"


async def test_a_daemon_that_goes_on_is_gone_on_with(devices: Devices, worker: Worker):
    page = await devices.open("/#/events", **DESK)
    await expect(page.get_by_role("heading", name="Events")).to_be_visible()
    await worker.control.tell("synapse-codex-8120", ActivityChanged(activity=Activity.BUSY, evidence="before"))
    await expect(page.locator(".events .says").first).to_contain_text("before")
    await page.context.set_offline(True)
    await expect(page.get_by_text("Offline.")).to_be_visible()
    for number in range(3):
        data = ActivityChanged(activity=Activity.READY, evidence=f"meanwhile {number}")
        await worker.control.tell("synapse-codex-8120", data)
    await page.context.set_offline(False)
    await expect(page.locator(".events .says").first).to_contain_text("meanwhile 2")
    told = await page.locator(".events .says").all_text_contents()
    assert [text for text in told if "meanwhile" in text] == [f"ready · meanwhile {number}" for number in (2, 1, 0)]


_LATE = """
window.late = [];
const Socket = window.WebSocket;
window.WebSocket = function (url) {
  const made = { close() {} };
  window.late.push(() => {
    const socket = new Socket(url);
    for (const name of ["onopen", "onmessage", "onclose"]) socket[name] = (event) => made[name]?.(event);
  });
  return made;
};
"""
"""Streams open when the test says so."""


async def test_events_that_come_before_the_stream_is_open_are_shown(devices: Devices, worker: Worker):
    """What was read before the stream was there is no whole: what happens in between is in neither."""
    page = await (await devices.context(**DESK)).new_page()
    await page.add_init_script(_LATE)
    await page.goto(devices.url + "/#/events")
    await expect(page.get_by_role("heading", name="Events")).to_be_visible()
    await page.wait_for_function("() => window.late.length > 0")
    data = ActivityChanged(activity=Activity.BUSY, evidence="in between")
    await worker.control.tell("synapse-codex-8120", data)
    await page.evaluate("() => { for (const open of window.late) open(); }")
    await expect(page.locator(".events .says").first).to_contain_text("in between")


async def test_a_phone_shows_what_it_has_in_its_width(devices: Devices, worker: Worker):
    task = await worker.ask("ann", question("word " * 200 + "x" * 400), message="x" * 500)
    text = "```\n" + "x" * 500 + "\n```\n" + "| a " * 60 + "|\n" + "|---" * 60 + "|\n"
    worker.control.rows = [f'[[120,"{"─" * 120}"]]'] * 40
    for path in ("/", "/#/agent/ann", "/#/events", "/#/settings"):
        page = await devices.open(path, **PHONE)
        await expect(page.locator(f"{CARD}, .events, .settings").first).to_be_visible()
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, path
    await worker.control.complete(task, text)
    page = await devices.open("/#/agent/ann", **PHONE)
    await page.get_by_role("tab", name="Conversation").tap()
    await expect(page.locator(".answer pre")).to_be_visible()
    assert await page.evaluate("document.querySelector('.talk').scrollWidth") <= 390
