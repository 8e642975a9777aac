"""The page of the JSON reports: each schema with its fields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tools.website.navigation import DOCS

from torchferry.text import Language, Text

FOLDER = DOCS / "schemas"
_TITLE = Text("JSON schemas", "JSON schema")
_INTRO = Text(
    "Every report in JSON has a JSON Schema, and every report that the tests write is validated against it. A field "
    "with `?` may be missing; `[]` is an element of an array, `*` any key of an object, and `said` a text in both "
    'languages: `{"en": ..., "zh": ...}`.',
    "每种 JSON 报告都有 JSON Schema，测试写出的每份报告都按它校验。带 `?` 的字段可能缺失；"
    '`[]` 表示数组的元素，`*` 表示对象的任意键，`said` 表示两种语言的文本：`{"en": ..., "zh": ...}`。',
)
_FILE = Text("Schema: [{name}](../schemas/{name})", "Schema 文件：[{name}](../schemas/{name})")
_HEAD = Text("Field | Type", "字段 | 类型")


def pages(language: Language) -> dict[str, str]:
    """The one page of all schemas."""
    lines = [f"# {_TITLE.in_language(language)}", "", _INTRO.in_language(language), ""]
    for file in sorted(FOLDER.glob("*.json")):
        schema = json.loads(file.read_text("utf-8"))
        lines += [f"## {file.stem}", "", _FILE.format(name=file.name).in_language(language), ""]
        lines += [f"| {_HEAD.in_language(language)} |", "|---|---|"]
        lines += [f"| `{name}` | {kind} |" for name, kind in _fields(schema)] + [""]
    return {"formats/schemas.md": "\n".join(lines)}


def _fields(schema: dict[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """(path of a field, its type), as deep as the schema goes."""
    for key, inner in schema.get("properties", {}).items():
        path = f"{before}{key}{'' if key in schema.get('required', ()) else '?'}"
        yield path, _kind(inner)
        for form in (inner, *inner.get("anyOf", ())):
            yield from _inside(form, path)


def _inside(schema: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(key), dict):
            yield from _inside(schema[key], path + mark)
    yield from _fields(schema, f"{path}.")


def _kind(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " \\| ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " \\| ".join(map(_kind, schema["anyOf"]))
    if isinstance(schema.get("items"), dict):
        return f"array of {_kind(schema['items'])}"
    kind = schema.get("type", "any")
    return " \\| ".join(kind) if isinstance(kind, list) else str(kind)
