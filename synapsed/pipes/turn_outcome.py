"""How a turn ended, by the answer to its prompt. Pure."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from synapsed.pipes.speech import TurnSpeech
from synapsed.profiles.screen_spec import ErrorPattern

MESSAGE_MAX = 2000
"""Characters of a failure's message that are kept."""

_CODES = {401: "AUTH_REQUIRED", 403: "AUTH_REQUIRED", -32000: "AUTH_REQUIRED", 429: "RATE_LIMITED"}
_LIMIT = re.compile(r"\b429\b|rate.?limit|too many requests|quota", re.IGNORECASE)
_SIGN_IN = re.compile(r"\b40[13]\b|unauthori[sz]ed|authenticat|not logged in|api key", re.IGNORECASE)
_FULL = re.compile(r"context (?:length|window)|too long|maximum context", re.IGNORECASE)


class TurnOver(NamedTuple):
    """`code` is None for a turn that ended well, "INTERRUPTED" for one that was stopped; `text` is the answer, or what
    is said of the failure."""

    code: str | None
    text: str
    evidence: str


def outcome(answer: dict[str, Any], speech: TurnSpeech, failures: Sequence[ErrorPattern]) -> TurnOver:
    """What the response `answer` makes of the turn."""
    error, result = answer.get("error"), answer.get("result")
    if isinstance(error, dict):
        return _failed(error)
    stop = result.get("stopReason") if isinstance(result, dict) else None
    if stop == "cancelled":
        return TurnOver("INTERRUPTED", "", "acp: stopReason cancelled")
    if stop != "end_turn":
        code = "CONTEXT_FULL" if stop == "max_tokens" else "MODEL_ERROR"
        return TurnOver(code, f"the program stopped: {stop}", f"acp: stopReason {stop}")
    said = speech.answer or ""
    for pattern in failures:
        if pattern.pattern.search(said or speech.notices):
            return TurnOver(
                pattern.code, (said or speech.notices)[:MESSAGE_MAX], "acp: the profile's words for a failure"
            )
    # A program that counts its tokens, and counts none for a turn of which it has no message, has not asked its model.
    if isinstance(result, dict) and "usage" in result and result["usage"] is None and not _has_id(speech):
        words = (said or speech.notices).strip()
        if words:
            return TurnOver(code_of(words), words[:MESSAGE_MAX], "acp: end_turn without a message and without usage")
    return TurnOver(None, said, "acp: stopReason end_turn")


def _has_id(speech: TurnSpeech) -> bool:
    return any(message.has_id for message in speech.messages)


def _failed(error: dict[str, Any]) -> TurnOver:
    data = error.get("data")
    details = [str(error.get("message") or "")]
    if isinstance(data, dict):
        details += [str(value) for value in data.values() if isinstance(value, str)]
    elif isinstance(data, str):
        details.append(data)
    words = ": ".join(dict.fromkeys(filter(None, details)))[:MESSAGE_MAX] or "the program gave no reason"
    number = error.get("code")
    code = _CODES.get(number) if isinstance(number, int) else None
    return TurnOver(code or code_of(words), words, f"acp: error {number}")


def code_of(words: str) -> str:
    """The code of a failure that is told in words alone."""
    if _LIMIT.search(words):
        return "RATE_LIMITED"
    if _SIGN_IN.search(words):
        return "AUTH_REQUIRED"
    return "CONTEXT_FULL" if _FULL.search(words) else "MODEL_ERROR"
