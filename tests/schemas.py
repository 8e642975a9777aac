"""Holds what reports write as JSON against docs/schemas: no key is missing, none is there that the schema does not know."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from torchferry.report.formats import Options, Reports

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"


@cache
def validator(name: str) -> Draft202012Validator:
    """For the schema of a format, without what later versions may add."""
    return Draft202012Validator(_closed(json.loads((FOLDER / f"{name}.json").read_text("utf-8"))))


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(each) for key, each in schema.items()}
    return {"additionalProperties": False, **closed} if "properties" in closed else closed


def wrong(name: str, document: Any) -> list[str]:
    """What of a document its schema does not say."""
    return [
        f"{name}{error.json_path[1:]}: {error.message[:200]}"
        for error in validator(name).iter_errors(document)
    ]


def name_of(reports: Reports[Any], document: Any) -> str:
    """The schema of what such reports have written; "" for those that a test has made up."""
    module = reports.renderers.get("json", "").partition(":")[0]
    name = str(document.get("format"))
    return name if (FOLDER / f"{name}.json").is_file() or module.startswith("torchferry.") else ""


def checking(
    pieces: Callable[..., Iterator[bytes]],
) -> Callable[[Reports[Any], Any, str, Options | None], Iterator[bytes]]:
    """`Reports.pieces` that looks at all JSON that it makes."""

    def checked(
        self: Reports[Any], content: Any, format_name: str, options: Options | None = None
    ) -> Iterator[bytes]:
        made = list(pieces(self, content, format_name, options))
        if format_name == "json":
            document = json.loads(b"".join(made))
            name = name_of(self, document)
            problems = wrong(name, document) if name else []
            assert not problems, "\n".join(
                ["run `make docs` after tools/make_schemas.py says so:", *problems]
            )
        yield from made

    return checked
