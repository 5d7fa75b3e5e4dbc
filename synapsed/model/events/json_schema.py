"""Makes the JSON Schema of the messages of an event stream from the models."""

from functools import cache
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from synapsed.model.events.kinds import Data, EventData, Gap, Truncated
from synapsed.model.events.wire import BATCH

KINDS: tuple[type[Data], ...] = (*get_args(get_args(EventData)[0]), Gap)
"""Every kind of event that has data of its own."""

_REF = "#/$defs/{model}"


@cache
def event_schema() -> dict[str, Any]:
    """Returns the JSON Schema (2020-12), which callers must not change. Each kind has two definitions: `X` for its
    data, and `XEvent` for the whole event."""
    models: list[type[BaseModel]] = [*KINDS, Truncated]
    _, found = models_json_schema([(model, "serialization") for model in models], ref_template=_REF)
    defs: dict[str, Any] = found["$defs"]
    for kind in KINDS:
        _of_wire(defs[kind.__name__], kind)
        told = {"const": kind.model_fields["type"].default, "type": "string"}
        data = {"$ref": f"#/$defs/{kind.__name__}"}
        defs[f"{kind.__name__}Event"] = _envelope(told, data, has_id=kind is not Gap)
    single = [{"$ref": f"#/$defs/{kind.__name__}Event"} for kind in KINDS]
    several = {"type": "array", "items": {"$ref": "#/$defs/SingleEvent"}}
    defs["SingleEvent"] = {"oneOf": single}
    defs["BatchEvents"] = _envelope({"const": BATCH, "type": "string"}, several, has_id=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "SynapsedEvent",
        "description": "One message of a stream of events. Clients pass over events and fields that they do not know.",
        "oneOf": [{"$ref": "#/$defs/SingleEvent"}, {"$ref": "#/$defs/BatchEvents"}],
        "$defs": dict(sorted(defs.items())),
    }


def _of_wire(schema: dict[str, Any], kind: type[Data]) -> None:
    """Changes the schema of a kind to that of the data as it is sent: without the type, which stands beside it, and
    with `Truncated` as an alternative for large fields."""
    schema["properties"].pop("type")
    schema["required"] = list(schema["properties"])
    for name in kind.large_fields():
        whole = schema["properties"][name]
        about = {"description": whole.pop("description")} if "description" in whole else {}
        plain = {key: value for key, value in whole.items() if key not in ("title", "default")}
        choices = whole.pop("anyOf") if "anyOf" in whole else [plain]
        schema["properties"][name] = {"anyOf": [*choices, {"$ref": "#/$defs/Truncated"}], **about}
    for told in schema["properties"].values():
        told.pop("default", None)  # a sent event always has the field
        told.pop("title", None)


def _envelope(event: dict[str, Any], data: dict[str, Any], *, has_id: bool) -> dict[str, Any]:
    name = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    properties = {
        "id": {"type": "integer" if has_id else "null"},
        "event": event,
        "data": data,
        "time": {"type": "string", "format": "date-time"},
        "agent": name,
        "task": name,
        "context": name,
    }
    return {"type": "object", "properties": properties, "required": list(properties)}
