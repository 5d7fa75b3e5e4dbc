"""What is made from the models of events: `packaging/events.d.ts`, and the tables of `docs/events.md`.

python -m scripts.events
"""

import json
from pathlib import Path
from typing import Any

from synapsed.model.events.json_schema import KINDS, event_schema

ROOT = Path(__file__).resolve().parent.parent
TYPES = ROOT / "packaging" / "events.d.ts"
DOCUMENT = ROOT / "docs" / "events.md"
BEGIN = "<!-- made by python -m scripts.events from here -->"
END = "<!-- to here -->"

HEAD = """\
// The events of synapsed, as GET /events and GET /agents/{agent}/events send them (docs/events.md).
// Made from synapsed/model/events by `python -m scripts.events`.
// There may be others in future: pass over those that you do not know, and their fields.
"""


def typescript() -> str:
    """Declarations of everything that a stream sends."""
    schema = event_schema()
    pieces = [HEAD]
    for name, definition in schema["$defs"].items():
        pieces.append(_comment(definition.get("description"), "") + _declared(name, definition))
    pieces.append(f"export type {schema['title']} = {_type(schema, '')};\n")
    return "\n".join(pieces)


def document() -> str:
    """`docs/events.md` with its tables as they are to be."""
    before, rest = DOCUMENT.read_text().split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n\n{_tables()}\n{END}{after}"


def _declared(name: str, definition: dict[str, Any]) -> str:
    if "properties" in definition:
        return f"export interface {name} {_type(definition, '')}\n"
    return f"export type {name} = {_type(definition, '')};\n"


def _type(schema: dict[str, Any], indent: str) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if (choices := schema.get("anyOf") or schema.get("oneOf")) is not None:
        return " | ".join(dict.fromkeys(_type(choice, indent) for choice in choices))
    match schema.get("type"):
        case "string" | "boolean" | "null" as plain:
            return plain
        case "integer" | "number":
            return "number"
        case "array":
            return f"Array<{_type(schema.get('items', {}), indent)}>"
        case "object" if "properties" in schema:
            return _members(schema, indent)
        case "object":
            return "{ [key: string]: unknown }"
    return "unknown"


def _members(schema: dict[str, Any], indent: str) -> str:
    inner = indent + "  "
    required = set(schema.get("required", ()))
    lines = []
    for name, one in schema["properties"].items():
        key = name if name in required else f"{name}?"
        lines.append(f"{_comment(one.get('description'), inner)}{inner}{key}: {_type(one, inner)};\n")
    return "{\n" + "".join(lines) + indent + "}"


def _comment(about: str | None, indent: str) -> str:
    return "" if not about else f"{indent}/** {' '.join(about.split()).replace('*/', '* /')} */\n"


def _tables() -> str:
    defs = event_schema()["$defs"]
    lines = []
    for kind in sorted(KINDS, key=lambda kind: str(kind.model_fields["type"].default)):
        told = defs[kind.__name__]
        lines += [f"### {kind.model_fields['type'].default}", "", " ".join(told["description"].split()), ""]
        lines += ["| field | type | |", "|---|---|---|"]
        for name, one in told["properties"].items():
            typed = _type(one, "").replace("|", "\\|")
            lines.append(f"| `{name}` | `{typed}` | {' '.join(one.get('description', '').split())} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    TYPES.write_text(typescript())
    DOCUMENT.write_text(document())


if __name__ == "__main__":
    main()
