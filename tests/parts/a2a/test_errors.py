"""The table of errors is the SDK's, which is the specification's (5.4)."""

from a2a.utils import errors as sdk

from synapsed.a2a_types.a2a_errors import (
    DOMAIN,
    KINDS,
    SERVER_ERROR,
    A2aError,
    Kind,
    from_synapsed,
    invalid_params,
    rest_error,
)
from synapsed.errors import HTTP_STATUS, InvalidChoice, InvalidRequest, QueueFull, TaskNotFound


def test_the_table_is_the_sdks():
    codes = sdk.JSON_RPC_ERROR_CODE_MAP
    told = {
        codes[kind]: Kind(row.reason, row.http_code, row.grpc_status) for kind, row in sdk.A2A_ERROR_MAPPING.items()
    }
    assert {code: kind for code, kind in KINDS.items() if code in told} == told
    assert KINDS.keys() == set(codes.values())


def test_every_code_of_ours_has_a_form_over_http():
    for code, status in HTTP_STATUS.items():
        body = rest_error(A2aError(SERVER_ERROR, "x", reason=code))["error"]
        assert body["code"] == status
        assert body["status"].isupper()
        assert body["details"][0]["reason"] == code


def test_forms():
    told = rest_error(from_synapsed(TaskNotFound("no task t", task_id="t")))["error"]
    assert (told["code"], told["status"], told["message"]) == (404, "NOT_FOUND", "Task not found: no task t")
    assert told["details"][0]["metadata"] == {"taskId": "t"}
    assert told["details"][0]["domain"] == DOMAIN
    told = rest_error(from_synapsed(QueueFull("full")))["error"]
    assert (told["code"], told["status"], told["details"][0]["domain"]) == (429, "RESOURCE_EXHAUSTED", "synapsed")
    both = invalid_params("a", "is bad", ("b", "too"))
    assert both.message == "a: is bad; b: too"
    assert [fault["field"] for fault in rest_error(both)["error"]["details"][1]["fieldViolations"]] == ["a", "b"]


def test_an_answer_that_is_not_offered_is_refused_with_the_options():
    refused = from_synapsed(InvalidChoice("no", options=[{"key": "1", "label": "はい"}], prompt_id="p1"))
    assert refused.code == -32602
    metadata = {"prompt_id": "p1", "code": "INVALID_CHOICE", "options": '[{"key": "1", "label": "はい"}]'}
    assert refused.metadata == metadata
    assert from_synapsed(InvalidRequest("no", field="x")).metadata == {"field": "x", "code": "INVALID_REQUEST"}
