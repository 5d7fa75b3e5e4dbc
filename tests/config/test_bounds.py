"""Every bound of the configuration, of the parts' sections too, is told in words of our own, with the place."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from synapsed.config.config_files import load_config
from synapsed.config.paths import Paths
from synapsed.config.toml_errors import describe_validation
from synapsed.errors import ConfigError
from synapsed.parts.loading import config_model

PYDANTIC = re.compile(
    r"\b(?:Input|String|List|Dictionary|Tuple|Set|Value|should|validation|valid (?!name)|tag|greater|or equal|items?)\b"
)
"""What stands in its messages, and in none of ours."""


def models(annotation: Any, seen: set[type[BaseModel]]) -> set[type[BaseModel]]:
    """All that the configuration is made of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if annotation in seen:
            return seen
        seen.add(annotation)
        for field in annotation.model_fields.values():
            models(field.annotation, seen)
    for one in get_args(getattr(annotation, "__value__", annotation)):
        models(one, seen)
    return seen


def beyond(schema: dict[str, Any], whole: dict[str, Any]) -> Iterator[Any]:
    """Values that are not of the kind, or are beyond a bound."""
    if (ref := schema.get("$ref")) is not None:
        schema = whole["$defs"][ref.rpartition("/")[2]]
    for one in schema.get("anyOf", []) + schema.get("oneOf", []):
        yield from beyond(one, whole)
    yield from (7, "x" * (schema.get("maxLength", 3) + 1), "", [], {}, [[]], {"": {}}, True, 0.5)
    if "pattern" in schema:
        yield "\0 !"
    for key, step in (("minimum", -1), ("maximum", 1), ("exclusiveMinimum", 0), ("exclusiveMaximum", 0)):
        if key in schema:
            yield schema[key] + step
    if schema.get("type") in ("number", "integer"):
        yield from (float("inf"), float("nan"), -1, 10**400)
    if schema.get("type") == "array":
        items = schema.get("items", {})
        yield [_fits(items)] * (schema.get("maxItems", 0) + 1)
        for value in beyond(items, whole):
            yield [value]
    if isinstance(values := schema.get("additionalProperties"), dict):
        yield {f"a{n}": _fits(values) for n in range(schema.get("maxProperties", 0) + 1)}
        for value in beyond(values, whole):
            yield {"a": value}


def _fits(schema: dict[str, Any]) -> Any:
    """Something that fits a plain kind."""
    kinds = {"string": "a", "integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}
    return kinds.get(str(schema.get("type")), "a")


FOUND = sorted(models(config_model(), set()), key=lambda model: f"{model.__module__}.{model.__name__}")


@pytest.mark.parametrize("model", FOUND, ids=lambda model: model.__name__)
def test_what_is_beyond_a_bound_is_told_in_our_words(model: type[BaseModel]) -> None:
    told = set()
    for name, field in model.model_fields.items():
        kind: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        schema = adapter.json_schema()
        for value in beyond(schema, schema):
            try:
                adapter.validate_python(value)
            except ValidationError as error:
                text = f"{name} = 1\n"
                told.add(describe_validation(error, Path("config.toml"), text, model))
    assert [one for one in told if PYDANTIC.search(one)] == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "".join(
                f'[[rule]]\nname = "r{n}"\non = {{ event = "activity" }}\ndo = {{ notify = "n" }}\n' for n in range(201)
            ),
            ":801: rule: must have at most 200 entries, and has 201: take some out",
        ),
        (
            "".join(f'[webhooks.w{n}]\nurl = "https://a.b"\nsecret_env = "S"\n' for n in range(203)),
            ": webhooks: must have at most 200 entries, and has 203: take some out",
        ),
        ("[a2a.push]\nattempts = 0\n", ":2: a2a.push.attempts: must be at least 1"),
    ],
)
def test_the_place_is_told_with_it(tmp_path: Path, text: str, told: str) -> None:
    paths = Paths(config=tmp_path, state=tmp_path, run=tmp_path, a2a=tmp_path)
    paths.config_file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load_config(paths, config_model())
    assert told in refused.value.message
