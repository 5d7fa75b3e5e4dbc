"""Secrets by name and by shape: what is masked, what is not, and that hostile text costs no more than its length."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.model import masking
from synapsed.model.masking import MASK, is_secret_key, mask, mask_text, nested_under_key, secret_spans, unfinished
from tests.support.gated import first_of
from tests.support.secrets import planted

PLANTED = planted()


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize(
    "around",
    first_of(["before {} after", "{}", "日本語{}日本語", "line\n{}\nline", '("{}")', "İ{}", "\ud83d {} \udc00"]),
)
def test_a_secret_of_a_known_format_is_masked(name: str, around: str) -> None:
    text, secret = PLANTED[name]
    if around == "İ{}" and not text.startswith(("use", "-----", "clone")):
        text = f" {text}"  # a letter before a name makes another name of it
    seen = mask_text(around.format(text))
    assert secret not in seen
    assert MASK in seen
    for piece in (secret[: len(secret) // 2], secret[len(secret) // 2 :]):
        assert len(piece) < 5 or piece not in seen


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("times", first_of([1, 2]))
def test_also_within_json_of_json(name: str, times: int) -> None:
    text, secret = PLANTED[name]
    for _ in range(times):
        text = json.dumps({"command": f"line\n{text}"})
    assert secret not in mask_text(text)
    json.loads(mask_text(text))


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("before", first_of([masking._PIECE - 3, masking._PIECE, masking._PIECE - 60]))
def test_also_where_the_search_goes_from_one_piece_to_the_next(name: str, before: int) -> None:
    text, secret = PLANTED[name]
    assert secret not in mask_text("x " * (before // 2) + text)


@pytest.mark.parametrize(
    "text",
    [
        "the token is spent, and the secret of it: patience",
        "tokens: 512, max_tokens=4096, token_count: 7",
        "def login(password: str, token: bytes | None = None) -> Token:",
        "if password == other: return token == x",
        'api_key = os.environ["OPENAI_API_KEY"]',
        "password=$PASSWORD ${TOKEN} secret: <yours>",
        "docker run -u 1000:1000 image; chown -R me:me .",
        "cd $PWD; PWD=/home/me pwd",
        "http://localhost:8100/agents/x?limit=5&key=a",
        "a@b.example said: see ssh://git@example.org:22/x",
        "skeleton sk-learn task-force disk-usage AKIA eyJ npm_config pat pattern SKU",
        "Basic understanding of Bearer tokens in general",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "0123456789abcdef" * 4,
        "synapse-claude-8100 5ec3d26b-1111-4222-8333-444455556666",
        "パスワードを忘れた",
        "",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask_text(text) == text


@pytest.mark.parametrize(
    "key",
    [
        *(
            "password",
            "Password",
            "PASSWD",
            "db_password",
            "dbPassword",
            "api_key",
            "api-key",
            "apiKey",
            "APIKey",
            "apikey",
        ),
        *("x-api-key", "Authorization", "proxy-authorization", "Set-Cookie", "token", "accessToken", "X-Auth-Token"),
        *(
            "client_secret",
            "private-key",
            "AWS_SECRET_ACCESS_KEY",
            "email",
            "e-mail",
            "credentials",
            "sshKey",
            "passphrase",
        ),
    ],
)
def test_keys_that_tell(key: str) -> None:
    assert is_secret_key(key)
    for value in ("x", 5, 1.5, ["a", {"b": "c"}], {"nested": ["d"]}):
        assert mask({"a": [{key: value}]}) == {"a": [{key: MASK}]}
    assert mask({key: None, "b": True}) == {key: None, "b": True}


@pytest.mark.parametrize(
    "key",
    [
        "tokens",
        "token_count",
        "max_tokens",
        "maxToken",
        "author",
        "monkey",
        "key",
        "keyboard",
        "secretary",
        "compass",
        "",
    ],
)
def test_keys_that_tell_nothing(key: str) -> None:
    assert not is_secret_key(key)
    assert mask({key: "x"}) == {key: "x"}


def test_keys_are_texts_too_and_what_is_too_deep_is_not_looked_into() -> None:
    text, secret = PLANTED["github"]
    assert secret not in json.dumps(mask({text: {"a": (text,)}}))
    deep: object = text
    for _ in range(100):
        deep = [deep]
    assert secret not in json.dumps(mask(deep))


@pytest.mark.parametrize("name", PLANTED)
def test_a_stream_that_holds_back_what_is_unfinished_never_shows_a_secret_in_pieces(name: str) -> None:
    text, secret = PLANTED[name]
    text = f"Here: {text}\nand more."
    for size in (1, 7, 64):
        pieces, sent = [], 0
        for at in range(size, len(text) + size, size):
            upto = len(text[:at]) - unfinished(text[:at]) if at < len(text) else len(text)
            if upto > sent:
                pieces.append(text[sent:upto])
                sent = upto
        assert "".join(pieces) == text
        if name in {"pem", "openssh"} or " " not in text[text.find(secret) - 1 : text.find(secret)]:
            assert not any(secret[:-4] in piece and MASK not in mask_text(piece) for piece in pieces)
        assert any(secret in piece for piece in pieces), "it goes in one piece, so that it can be seen"


def test_prose_of_every_language_flows() -> None:
    assert unfinished("one two ") == 0
    assert unfinished("one two") == 0
    assert unfinished("one tok") == 3
    assert unfinished("use s") == 1
    assert unfinished("class") == 0
    assert unfinished("日本語の文") == 0
    assert unfinished("a" * 20_000) <= masking.HELD_MAX
    assert unfinished("-----BEGIN RSA PRIVATE KEY-----\n" + "a b\n" * 20_000) <= masking.HELD_MAX


@given(st.text(st.sampled_from('sk-antghpTOKEN="\\: \nABeyJ.İ-'), max_size=400))
def test_spans_are_in_order_and_within_the_text(text: str) -> None:
    last = 0
    for start, end in secret_spans(text):
        assert last <= start < end <= len(text)
        last = end


HOSTILE = {
    "prefix": "sk-ant-",
    "name": "password=",
    "armour": "-----BEGIN ",
    "quote": 'token:"',
    "address": "://a:",
    "segments": "eyJ.",
    "dashes": "--",
    "letter": "İtoken=x ",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_costs_in_proportion_to_its_length(name: str) -> None:
    def cost(length: int) -> float:
        text = HOSTILE[name] * (length // len(HOSTILE[name]))
        return min(_cpu(text) for _ in range(3))

    assert cost(400_000) < 12 * cost(100_000), "four times the text, with room for a noisy machine"


def _cpu(text: str) -> float:
    before = time.thread_time()
    secret_spans(text)
    return time.thread_time() - before


TELLING = (
    *(
        "password",
        "passwd",
        "passphrase",
        "db_pwd",
        "secret",
        "token",
        "apiKey",
        "api-key",
        "ACCESS_KEY",
        "account_key",
    ),
    *("privateKey", "authkey", "signing_key", "encryptionKey", "storage-key", "master_key", "ssh_key", "credential"),
    *("Credentials", "authorization", "Cookie", "cookies", "email", "E-Mail", "clientSecretIds"),
)


@pytest.mark.parametrize("key", TELLING)
@pytest.mark.parametrize("before", first_of([masking._PIECE - 3, 0, masking._PIECE]))
@pytest.mark.parametrize("filling", first_of(["İ", "x", "日"]))
def test_what_is_nested_under_a_telling_key_is_found(key: str, before: int, filling: str) -> None:
    for nested, found in ((["v"], True), ({"a": "v"}, True), ([], False), ({}, False), ("v", False)):
        text = json.dumps({"text": filling * before, key: nested}, ensure_ascii=False)
        assert nested_under_key(text) is found
    assert not nested_under_key(json.dumps({"text": filling * before, "parts": ["v"], key[:2]: ["v"]}))


@given(
    st.lists(
        st.one_of(
            st.sampled_from([*TELLING, '"', '":', ' "', ": ", "[", "{", "]", "}", " ", "İ", "\ud83d", "-", "key", "S"]),
            st.sampled_from(TELLING).map(lambda key: key.replace("s", "\u017f").replace("i", "\u0131")),
            st.text(max_size=3),
        ),
        max_size=12,
    ).map("".join)
)
def test_what_is_nested_is_found_wherever_its_pattern_would_be(text: str) -> None:
    ((_, pattern),) = {(pattern.pattern, pattern) for _, pattern in masking._NESTED._tried}
    assert nested_under_key(text) is (pattern.search(text) is not None)


@pytest.mark.parametrize("key", ["pa\u017f\u017fword", "CL\u0130ENT_\u017fECRET", "credent\u0131al", "to\u212aen"])
def test_letters_that_are_taken_for_those_of_ascii_hide_no_name(key: str) -> None:
    assert nested_under_key(f'{{"{key}": ["v"]}}')
    assert mask_text(f'{{"{key}": "hidden"}}') == f'{{"{key}": "{MASK}"}}'
