"""protobuf's JSON parser is kept from looking for lone surrogates, and refuses them all the same."""

import inspect
from typing import Any

import pytest
from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format

from synapsed.a2a_types.a2a_errors import A2aError
from synapsed.a2a_types.free_json import SEARCH
from synapsed.parts.a2a.params import parse


def request(**part: Any) -> dict[str, Any]:
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [part]}}


def test_the_parser_looks_by_this_name_and_finds_nothing():
    assert f"{SEARCH}.search(value)" in inspect.getsource(json_format)
    assert getattr(json_format, SEARCH).search("\ud800") is None


@pytest.mark.parametrize("text", ["\ud800", "a\udc00b", "\udc00\ud800", "x" * 100_000 + "\udfff"])
@pytest.mark.parametrize("where", ["text", "filename", "metadata", "key"])
def test_half_a_character_is_refused(where: str, text: str):
    part: dict[str, Any] = {"text": "hello"}
    part |= {"metadata": {"a": text}} if where == "metadata" else {"metadata": {text: 1}} if where == "key" else {}
    part |= {where: text} if where in ("text", "filename") else {}
    with pytest.raises(A2aError):
        parse(request(**part), pb.SendMessageRequest)


def test_what_is_whole_is_taken():
    text = "\U0001f600 漢 \x00 " * 100_000
    assert parse(request(text=text), pb.SendMessageRequest).message.parts[0].text == text
