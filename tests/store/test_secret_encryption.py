"""Secrets in the database: none can be read in the file, and all come back as they were."""

import json
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.errors import StoreError
from synapsed.interfaces import EVERY_EVENT, NewEvent, TaskFilter
from synapsed.model.events import AgentAlert, AgentReported, TaskArtifactAdded, ToolExecution
from synapsed.model.records import Checkpoint
from synapsed.model.task import Artifact, Message
from synapsed.store.encoding import KEY_BYTES, Sealer, load_key
from tests.store.conftest import OpenStore
from tests.store.samples import a_task, an_agent
from tests.support.secrets import planted

PLANTED = planted()
SEALER = Sealer(bytes(KEY_BYTES))
OTHER = Sealer(b"\1" * KEY_BYTES)


@pytest.mark.parametrize("name", PLANTED)
def test_a_row_hides_its_secret_and_gives_it_back(name: str) -> None:
    text, secret = PLANTED[name]
    document = {"message": f"line\n{text}\n", "n": 5, "inner": json.dumps({"command": text})}
    row = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    sealed = SEALER.seal(row)
    assert secret not in sealed
    assert json.loads(sealed)["n"] == 5, "it is JSON still"
    assert SEALER.text(sealed.encode()) == row
    assert secret not in OTHER.text(sealed.encode())
    assert SEALER.text(SEALER.seal(sealed).encode()) == row, "sealed again it is the same"


@pytest.mark.parametrize(
    "row",
    [
        {"password": 123456789012, "token": -5.5, "api_key": 12345, "authorization": 1, "cookie": 12},
        {"password": ["a", {"b": 'c\n"d"'}], "secret": {"x": {"y": ["z"]}}, "token": [], "credentials": {}},
        {"email": "me@example.org", "Authorization": "Bearer x", "cookie": "a=b; c=d"},
        {"text": "\u27e6sealed:" + "A" * 60 + "\u27e7", "password": "\u27e6sealed:"},
        {"text": 'password: "', "next": "-----BEGIN RSA PRIVATE KEY-----", "last": "\\"},
        {"text": "\npm_" + "a" * 40 + "\u0001secret_" + "b" * 50 + "\u0001", "token": "a" * 4095 + "\n\n"},
        {"prompt": "Password:", "options": [], "question": "Token:", "x": {"secret=": "b", "c": "pwd="}},
        {"passwort": "a", "sshKey": "b", "secretKey": "c"},
        {"text": "token='a", "next": "b' secret='c\\", "last": "d'"},
        {"text": "😀 token=日本語 x", "a": "token=\\", "b": "secret='\\'"},
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_every_json_comes_back(row: dict, separators: tuple[str, str]) -> None:
    text = json.dumps(row, ensure_ascii=False, separators=separators)
    sealed = SEALER.seal(text)
    json.loads(sealed)
    assert json.loads(SEALER.text(sealed.encode())) == row


@given(
    st.dictionaries(
        st.sampled_from(["password", "text", "api-key", "Authorization", "x"]),
        st.recursive(
            st.text(st.sampled_from('tokensecret=:"\\\n -日\u27e6'), max_size=60)
            | st.integers()
            | st.none()
            | st.booleans(),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["cookie", "y"]), inner, max_size=2)
            ),
            max_leaves=6,
        ),
    )
)
def test_any_json_comes_back(row: dict) -> None:
    sealed = SEALER.seal(json.dumps(row, ensure_ascii=False))
    json.loads(sealed)
    assert json.loads(SEALER.text(sealed.encode())) == row


def test_blobs() -> None:
    blob = b"\x1b[H" + os.urandom(1000)
    sealed = SEALER.seal_blob(blob)
    assert blob[3:20] not in sealed
    assert SEALER.unseal_blob(sealed) == blob
    assert OTHER.unseal_blob(sealed) is None
    assert SEALER.unseal_blob(blob) == blob, "one of an older version"


async def test_the_files_have_none_of_them(open_store: OpenStore, tmp_path: Path) -> None:
    path = tmp_path / "state" / "synapsed.db"
    everything = "\n".join(text for text, _ in PLANTED.values())
    store = await open_store()
    agent = an_agent(env={"OPENAI_API_KEY": PLANTED["openai"][1], "DB_PASSWORD": "correct horse"})
    task = a_task(agent_id=agent.id).model_copy(
        update={
            "message": Message.of(everything),
            "artifacts": [Artifact.answer(everything)],
            "metadata": {"password": ["one-of-them", {"deep": "and-another"}]},
        }
    )
    tool = ToolExecution(
        tool_name="shell", status="completed", input={"command": everything}, output={"text": everything}
    )
    await store.commit(
        agents=[agent],
        tasks=[task],
        events=[NewEvent(agent.id, tool), NewEvent.of(task, TaskArtifactAdded(artifact=Artifact.answer(everything)))],
    )
    await store.save_checkpoint(agent.id, Checkpoint(offset=1, cols=80, rows=24, redraw=everything.encode()))
    (told, exact) = await store.events.read(0)
    assert isinstance(told.data, ToolExecution)
    assert not [secret for _, secret in PLANTED.values() if secret in told.data.model_dump_json()], "events are masked"
    await store.close()
    copy = tmp_path / "copy.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))
    for file in (*path.parent.iterdir(), copy):
        content = file.read_bytes()
        for secret in (*(secret for _, secret in PLANTED.values()), "correct horse", "one-of-them", "and-another"):
            assert secret.encode() not in content, (file.name, secret)
    store = await open_store()
    assert await store.task(task.id) == task, "the work itself is exact"
    assert (await store.agents()) == [agent]
    assert (await store.events.read(0))[1] == exact
    checkpoint = await store.checkpoint(agent.id)
    assert checkpoint is not None
    assert checkpoint.redraw == everything.encode()


@pytest.mark.parametrize("letters", range(36, 61))
def test_a_text_that_looks_like_a_mark_stays_as_it_is(letters: int) -> None:
    text = "look: \u27e6sealed:" + "A" * letters + "\u27e7"
    assert SEALER.text(text.encode()) == text
    assert SEALER.unseal_bytes(text.encode()) == text.encode()


async def test_a_message_with_what_looks_like_a_mark_is_read_again(open_store: OpenStore) -> None:
    store = await open_store()
    texts = ["\u27e6sealed:" + "A" * letters + "\u27e7" for letters in (40, 41)]
    tasks = [a_task(1, message=Message.of(text)) for text in texts]
    told = [NewEvent.of(task, TaskArtifactAdded(artifact=Artifact.answer(texts[1]))) for task in tasks]
    await store.commit(tasks=tasks, events=told)
    await store.close()
    store = await open_store()
    assert await store.open_tasks() == tasks
    assert len((await store.tasks(TaskFilter()))[0]) == 2
    assert [event.data for event in await store.events.read(0)] == [each.data for each in told]


async def test_rows_that_cannot_be_read_are_passed_over(open_store: OpenStore, tmp_path: Path) -> None:
    store = await open_store()
    tasks = [a_task(number) for number in range(3)]
    alerts = [NewEvent("a", AgentAlert(code=f"X{number}", message="m")) for number in range(6)]
    await store.commit(agents=[an_agent()], tasks=tasks, events=alerts)
    await store.close()
    with closing(sqlite3.connect(tmp_path / "state" / "synapsed.db")) as connection, connection:
        connection.execute("UPDATE tasks SET data = CAST(x'7b22ff' AS TEXT) WHERE id = ?", (tasks[1].id,))
        connection.execute("UPDATE events SET data = '{' WHERE id IN (2, 3)")
        connection.execute("UPDATE events SET data = '[]' WHERE id = 5")
    store = await open_store()
    assert await store.open_tasks() == [tasks[0], tasks[2]]
    read = [event.id for event in await store.events.read(0)]
    assert read == [1, 4, 6]
    cursor, seen = 0, list[int]()
    for _ in range(6):
        page = await store.events.page(cursor, EVERY_EVENT, limit=1, size=1000)
        assert page.upto == cursor + 1
        cursor, seen = page.upto, [*seen, *(event.id for event in page.events)]
    assert seen == [1, 4, 6]


async def test_another_key_costs_the_secrets_and_nothing_else(open_store: OpenStore, tmp_path: Path) -> None:
    store = await open_store()
    text, secret = PLANTED["github"]
    agent, task = an_agent(), a_task().model_copy(update={"message": Message.of(f"do it: {text}")})
    await store.commit(agents=[agent], tasks=[task])
    await store.save_checkpoint(agent.id, Checkpoint(offset=1, cols=80, rows=24, redraw=b"x"))
    await store.close()
    (tmp_path / "state" / "synapsed.key").write_bytes(os.urandom(KEY_BYTES))
    store = await open_store()
    again = await store.task(task.id)
    assert again is not None
    assert secret not in again.model_dump_json()
    assert "do it: use \u27e6sealed:" in again.model_dump_json()
    assert await store.checkpoint(agent.id) is None


@pytest.mark.parametrize("data", ['{"offset": 3, "torn', "[]", "{}"])
async def test_a_checkpoint_that_cannot_be_read_is_none(open_store: OpenStore, data: str) -> None:
    """The screen is drawn from the kept output: its program must not end for it."""
    store = await open_store()
    agent = an_agent()
    await store.commit(agents=[agent])
    await store.save_checkpoint(agent.id, Checkpoint(offset=1, cols=80, rows=24, redraw=b"x"))
    await store.database.write(lambda connection: connection.execute("UPDATE checkpoints SET data = ?", (data,)))
    assert await store.checkpoint(agent.id) is None


async def test_a_key_that_is_gone_is_not_replaced(open_store: OpenStore, tmp_path: Path) -> None:
    key = tmp_path / "state" / "synapsed.key"
    store = await open_store()
    await store.commit(tasks=[a_task().model_copy(update={"message": Message.of(PLANTED["github"][0])})])
    await store.close()
    kept = key.read_bytes()
    key.unlink()
    with pytest.raises(StoreError, match=r"synapsed\.key is gone, .*: put it back; or, to go on without") as caught:
        await open_store()
    assert not key.exists()
    way = caught.value.message.rpartition("another one: ")[2]
    subprocess.run(["/bin/sh", "-c", way], check=True)
    assert (len(key.read_bytes()), key.stat().st_mode & 0o777) == (KEY_BYTES, 0o600)
    await (await open_store()).close()
    key.write_bytes(kept)
    await (await open_store()).close()


async def test_a_database_without_secrets_needs_no_key(open_store: OpenStore, tmp_path: Path) -> None:
    task, store = a_task(), await open_store()
    await store.commit(tasks=[task])
    await store.close()
    (tmp_path / "state" / "synapsed.key").unlink()
    assert await (await open_store()).task(task.id) == task


async def test_a_rescue_writes_the_key_again(open_store: OpenStore, tmp_path: Path) -> None:
    store = await open_store()
    key = tmp_path / "state" / "synapsed.key"
    kept = key.read_bytes()
    for name in ("synapsed.key", "synapsed.db"):
        (tmp_path / "state" / name).unlink()
    await store.rescue()
    assert (key.read_bytes(), key.stat().st_mode & 0o777) == (kept, 0o600)


async def test_a_damaged_database_keeps_its_key(open_store: OpenStore, tmp_path: Path) -> None:
    await (await open_store()).close()
    (tmp_path / "state" / "synapsed.db").write_bytes(b"x" * 8192)
    (tmp_path / "state" / "synapsed.key").unlink()
    with pytest.raises(StoreError, match=r"synapsed\.key is gone"):
        await open_store()


async def test_a_damaged_key_is_told(open_store: OpenStore, tmp_path: Path) -> None:
    await (await open_store()).close()
    key = tmp_path / "state" / "synapsed.key"
    key.write_bytes(b"short")
    with pytest.raises(
        StoreError, match=r"synapsed\.key: 5 bytes, the key of the database has 32: put the right file back"
    ):
        await open_store()
    assert key.read_bytes() == b"short"


def test_the_key_is_made_once_and_is_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "x.key"
    database = path.with_suffix(".db")
    key = load_key(path, database)
    assert len(key) == KEY_BYTES
    assert load_key(path, database) == key
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_milestone_masks_secrets_in_addresses(open_store: OpenStore) -> None:
    store = await open_store()
    where = "pushed to https://me:{0}@a.example/x, https://{0}@b.example/y and https://c.example/?token={0}&page=2"
    told = [AgentReported(kind="milestone", message=where.format(secret)) for secret in ("hunter2hunter", "***")]
    await store.commit(events=[NewEvent("a", told[0])])
    (event,) = await store.events.read(0)
    assert event.data == told[1]


async def test_events_mask_what_agents_report(open_store: OpenStore) -> None:
    store = await open_store()
    text, secret = PLANTED["stripe"]
    alert = AgentAlert(code="X", message=text, details={"token": "t", "n": 1, "list": [{"api-key": "k"}]})
    await store.commit(events=[NewEvent("a", alert)])
    (event,) = await store.events.read(0)
    assert isinstance(event.data, AgentAlert)
    assert secret not in event.data.message
    assert event.data.details == {"token": "***", "n": 1, "list": [{"api-key": "***"}]}


@pytest.mark.night
@pytest.mark.slow
async def test_large_rows_too(open_store: OpenStore, tmp_path: Path) -> None:
    """These are encoded, read and kept piece by piece, in another way than small ones."""
    text = "\n".join(f"{text}\n{'日本 lorem ipsum ' * 10_000}" for text, _ in PLANTED.values())
    store = await open_store()
    agent, task = an_agent(), a_task().model_copy(update={"message": Message.of(text)})
    tool = ToolExecution(tool_name="shell", status="completed", output={"text": text})
    told = TaskArtifactAdded(artifact=Artifact.answer(text))
    await store.commit(agents=[agent], tasks=[task], events=[NewEvent(agent.id, tool), NewEvent.of(task, told)])
    for _ in range(2):
        assert await store.task(task.id) == task
        (masked,), (exact,) = await store.events.read(0), await store.events.read(1)
        assert exact.data == told
        assert not [secret for _, secret in PLANTED.values() if secret in masked.data.model_dump_json()]
        await store.close()
        for file in (tmp_path / "state").iterdir():
            assert not [secret for _, secret in PLANTED.values() if secret.encode() in file.read_bytes()]
        store = await open_store()
