"""A capture as JSON, and back.

The document is one object. What occurs often stands once in a table, and is named by its position there.

    format       "torchferry-capture"
    version      1; a reader refuses a newer one
    torchferry   version that wrote it
    program, origin, device, torch, steps, seconds, processes, notes     as in `readiness/model.py: Capture`
    modules      [path, type] of each
    strings      every name: operators, arguments, dtypes, module paths, lines of code ...
    tensors      [dtype, shape, stride or null, layout, device]; a name is its position in `strings`
    signatures   [operator, [[argument, value], ...], [result, ...]]
    sites        [phase, module, place, node, inside]
    uses         [signature, site, calls, seconds, expanded, varied]; the first two are positions, the last two 0 or 1

A value is null, true, false, a number or a string as it is; a list of values is a list; a tensor is {"tensor":
position in `tensors`}; {"special": [kind, text]} is a dtype, device, layout ...; JSON has no infinities and no NaN:
they are {"float": "inf"}, {"float": "-inf"}, {"float": "nan"}.

`load` also takes a report in JSON (`readiness/report/json.py`), which holds its capture.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from torchferry import __version__
from torchferry.errors import InputError
from torchferry.readiness.model import (
    Argument,
    Capture,
    ModuleInfo,
    OperatorSite,
    Phase,
    Signature,
    Special,
    TensorSpec,
    Use,
    Value,
)
from torchferry.text import Text

_T = TypeVar("_T")
_Choice = TypeVar("_Choice", bound=Enum)
_MAX_COUNT = 2**63 - 1
_MAX_SECONDS = 1e12
_FLOATS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


def parse(text: str, name: str) -> JsonNode:
    """The document's root; `name` is what errors call the file."""
    try:
        return JsonNode(json.loads(text, parse_constant=_refuse_constant), name)
    except json.JSONDecodeError as error:
        wrong: object = f"{error.msg}: line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError) as error:
        wrong = error
    raise InputError(
        Text(
            f"{name}: not JSON ({wrong}); give a file that `ferry ops` wrote",
            f"{name}：不是 JSON（{wrong}）；请给出 `ferry ops` 写入的文件",
        )
    )


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


class JsonNode:
    """A value that knows its place in a document, so that an error can name what is wrong, and where.

    There may be millions, so a place is put together only for an error.
    """

    __slots__ = ("_key", "_parent", "name", "value")

    def __init__(self, value: object, name: str, parent: JsonNode | None = None, key: str | int = "") -> None:
        self.value = value
        self.name = name  # the file's
        self._parent = parent
        self._key = key

    @property
    def place(self) -> str:
        """uses[3][1]; "" is the document."""
        if self._parent is None:
            return ""
        above = self._parent.place
        if isinstance(self._key, int):
            return f"{above}[{self._key}]"
        return f"{above}.{self._key}" if above else self._key

    def format(self) -> object:
        """The field that tells documents apart; None where there is none."""
        return self.value.get("format") if isinstance(self.value, dict) else None

    def check_format(self, known: str, newest: int) -> None:
        """Refuse documents of others, and of newer versions."""
        if self.format() != known:
            raise InputError(
                Text(
                    f"{self.name}: {self._where('')}not a capture of operators; give a file that `ferry ops` wrote",
                    f"{self.name}：{self._where('')}不是算子清单；请给出 `ferry ops` 写入的文件",
                )
            )
        version = self.at("version").whole()
        if version > newest:
            raise InputError(
                Text(
                    f"{self.name}: written by a newer TorchFerry (format {version}, this one reads up to {newest}); "
                    "upgrade TorchFerry",
                    f"{self.name}：由更新版本的 TorchFerry 写入（格式 {version}，当前版本最高支持 {newest}）；请升级 "
                    "TorchFerry",
                )
            )

    def at(self, key: str) -> JsonNode:
        """A field of an object."""
        if not isinstance(self.value, dict):
            self._must_be(Text("an object", "对象"))
        if key not in self.value:
            raise InputError(
                Text(
                    f"{self.name}: {self._where(key)}is missing; create the file again",
                    f"{self.name}：缺少 {self._where(key)}；请重新生成该文件",
                )
            )
        return JsonNode(self.value[key], self.name, self, key)

    def items(self, count: int | None = None) -> list[JsonNode]:
        """The entries of a list, which must be so many."""
        if not isinstance(self.value, list) or (count is not None and len(self.value) != count):
            self._must_be(
                Text("a list", "列表")
                if count is None
                else Text(f"a list of {count}", f"长度为 {count} 的列表")
            )
        return [JsonNode(each, self.name, self, at) for at, each in enumerate(self.value)]

    def text(self) -> str:
        return str(self._checked(isinstance(self.value, str), Text("a string", "字符串")))

    def whole(self) -> int:
        return int(self._checked(type(self.value) is int, Text("an integer", "整数")))

    def count(self) -> int:
        """How many of something there are."""
        value = self.whole()
        self._checked(
            0 <= value <= _MAX_COUNT,
            Text("a non-negative integer that fits into 64 bits", "不超过 64 位的非负整数"),
        )
        return value

    def seconds(self) -> float:
        """A time that reports can add up."""
        value = self.value
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= _MAX_SECONDS:
            self._must_be(
                Text(
                    f"a number of seconds from 0 to {_MAX_SECONDS:.0e}", f"0 到 {_MAX_SECONDS:.0e} 之间的秒数"
                )
            )
        return float(value)

    def wholes(self) -> tuple[int, ...]:
        is_list = isinstance(self.value, list) and all(type(each) is int for each in self.value)
        return tuple(self._checked(is_list, Text("a list of integers", "整数列表")))

    def number(self) -> float:
        """A number with a fraction, or an object for one that JSON can't write."""
        value = self.value
        if isinstance(value, dict) and len(value) == 1 and value.get("float") in tuple(_FLOATS):
            return _FLOATS[value["float"]]
        if not isinstance(value, (int, float)) or isinstance(value, bool) or abs(value) > sys.float_info.max:
            self._must_be(
                Text(
                    'a number or {"float": "inf", "-inf" or "nan"}',
                    '数字，或 {"float": "inf"、"-inf" 或 "nan"}',
                )
            )
        return float(value)

    def plain(self) -> bool | int | float | str | None:
        """A value that JSON writes as it is."""
        if self.value is not None and not isinstance(self.value, (bool, int, float, str)):
            self._must_be(Text("null, true, false, a number or a string", "null、true、false、数字或字符串"))
        return self.value

    def flag(self) -> bool:
        return bool(self._checked(self.value in (0, 1), Text("0 or 1", "0 或 1")))

    def choice(self, choices: type[_Choice]) -> _Choice:
        """The member of an enumeration that this value names."""
        values = [choice.value for choice in choices]
        shown = ", ".join(values)
        return choices(self._checked(self.value in values, Text(f"one of {shown}", f"{shown} 之一")))

    def entry_of(self, table: Sequence[_T], table_name: str) -> _T:
        """The entry of a table that this position names."""
        at = self.whole()
        if not 0 <= at < len(table):
            self._must_be(
                Text(
                    f"a position in {table_name}, which has {len(table)} entries",
                    f"{table_name}（共 {len(table)} 项）中的位置",
                )
            )
        return table[at]

    def _checked(self, is_right: bool, what: Text) -> Any:
        if not is_right:
            self._must_be(what)
        return self.value

    def _must_be(self, what: Text) -> NoReturn:
        place = Text(self.place, self.place) if self.place else Text("the document", "文档")
        said = Text(
            "{name}: {place} must be {what}; create the file again",
            "{name}：{place} 必须是{what}；请重新生成该文件",
        )
        raise InputError(said.format(name=self.name, place=place, what=what))

    def _where(self, key: str) -> str:
        place = ".".join(filter(None, (self.place, key)))
        return f"{place} " if place else ""


FORMAT = "torchferry-capture"
REPORT_FORMAT = "torchferry-operators"
VERSION = 1
_PLAIN_FIELDS: Mapping[str, Callable[[JsonNode], Any]] = {
    "program": JsonNode.text,
    "origin": JsonNode.text,
    "device": JsonNode.text,
    "torch": JsonNode.text,
    "steps": JsonNode.count,
    "seconds": JsonNode.seconds,
    "processes": JsonNode.count,
}


def dump(capture: Capture) -> str:
    """The capture as the text of a file; equal captures give equal texts."""
    return json.dumps(to_document(capture), separators=(",", ":"), allow_nan=False) + "\n"


def read_capture(path: Path) -> Capture:
    """The capture in a file that `ferry ops -o` wrote."""
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise InputError(
            Text(
                f"{path}: not a capture; give a .json file that `ferry ops -o` wrote",
                f"{path}：不是算子清单；请给出 `ferry ops -o` 写入的 .json 文件",
            )
        ) from None
    return load(text, str(path))


def load(text: str, name: str) -> Capture:
    """The capture of such a text, or of a report; `name` is what an error calls the file."""
    root = parse(text, name)
    if root.format() == REPORT_FORMAT:
        root.check_format(REPORT_FORMAT, VERSION)
        root = root.at("capture")
    root.check_format(FORMAT, VERSION)
    try:
        return _CaptureReader(root).capture()
    except RecursionError:
        raise InputError(
            Text(
                f"{name}: a value is nested too deeply; create the file again",
                f"{name}：有的值嵌套过深；请重新生成该文件",
            )
        ) from None


def to_document(capture: Capture) -> dict[str, Any]:
    """The capture as the object that this module describes."""
    return _Writer().document(capture)


class _Writer:
    """Fills the tables while it writes the uses."""

    def __init__(self) -> None:
        self._strings: dict[str, int] = {}
        self._tensors: dict[TensorSpec, int] = {}
        self._tensor_rows: list[list[Any]] = []

    def document(self, capture: Capture) -> dict[str, Any]:
        # By their text: values that Python calls equal (1, 1.0, True) are not the same arguments.
        signatures: dict[str, int] = {}
        signature_rows: list[list[Any]] = []
        sites: dict[OperatorSite, int] = {}
        uses = []
        for use in capture.uses:
            given = [[self._name(each.name), self._value(each.value)] for each in use.signature.arguments]
            results = [self._value(each) for each in use.signature.results]
            row = [self._name(use.signature.operator), given, results]
            at = signatures.setdefault(json.dumps(row), len(signature_rows))
            if at == len(signature_rows):
                signature_rows.append(row)
            site = sites.setdefault(use.site, len(sites))
            uses.append([at, site, use.calls, use.seconds, int(use.expanded), int(use.varied)])
        site_rows = [
            [site.phase.value, *map(self._name, (site.module, site.place, site.node, site.inside))]
            for site in sites
        ]
        return {
            "format": FORMAT,
            "version": VERSION,
            "torchferry": __version__,
            **{name: getattr(capture, name) for name in _PLAIN_FIELDS},
            "notes": list(capture.notes),
            "modules": [[module.path, module.type] for module in capture.modules],
            "strings": list(self._strings),
            "tensors": self._tensor_rows,
            "signatures": signature_rows,
            "sites": site_rows,
            "uses": uses,
        }

    def _name(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _value(self, value: Value) -> Any:
        if isinstance(value, TensorSpec):
            return {"tensor": self._tensor(value)}
        if isinstance(value, Special):
            return {"special": [self._name(value.kind), self._name(value.text)]}
        if isinstance(value, tuple):
            return [self._value(each) for each in value]
        is_special = isinstance(value, float) and not math.isfinite(value)
        return {"float": str(value)} if is_special else value

    def _tensor(self, spec: TensorSpec) -> int:
        at = self._tensors.setdefault(spec, len(self._tensor_rows))
        if at == len(self._tensor_rows):
            stride = None if spec.stride is None else list(spec.stride)
            names = (self._name(spec.dtype), self._name(spec.layout), self._name(spec.device))
            self._tensor_rows.append([names[0], list(spec.shape), stride, *names[1:]])
        return at


class _CaptureReader:
    """Reads the tables first, then what names their entries."""

    def __init__(self, root: JsonNode) -> None:
        self._root = root
        self._strings = [node.text() for node in root.at("strings").items()]
        self._tensors = [self._tensor(node) for node in root.at("tensors").items()]
        self._signatures = [self._signature(node) for node in root.at("signatures").items()]
        self._sites = [self._site(node) for node in root.at("sites").items()]

    def capture(self) -> Capture:
        root = self._root
        return Capture(
            **{name: read(root.at(name)) for name, read in _PLAIN_FIELDS.items()},
            uses=tuple(self._use(node) for node in root.at("uses").items()),
            modules=tuple(
                ModuleInfo(*(part.text() for part in node.items(2))) for node in root.at("modules").items()
            ),
            notes=tuple(node.text() for node in root.at("notes").items()),
        )

    def _name(self, node: JsonNode) -> str:
        return node.entry_of(self._strings, "strings")

    def _tensor(self, node: JsonNode) -> TensorSpec:
        dtype, shape, stride, layout, device = node.items(5)
        return TensorSpec(
            dtype=self._name(dtype),
            shape=shape.wholes(),
            stride=None if stride.value is None else stride.wholes(),
            layout=self._name(layout),
            device=self._name(device),
        )

    def _signature(self, node: JsonNode) -> Signature:
        operator, arguments, results = node.items(3)
        given = [each.items(2) for each in arguments.items()]
        return Signature(
            operator=self._name(operator),
            arguments=tuple(Argument(self._name(name), self._value(value)) for name, value in given),
            results=tuple(map(self._value, results.items())),
        )

    def _value(self, node: JsonNode) -> Value:
        value = node.value
        if isinstance(value, list):
            return tuple(map(self._value, node.items()))
        if isinstance(value, dict):
            if "tensor" in value:
                return node.at("tensor").entry_of(self._tensors, "tensors")
            if "special" in value:
                kind, text = node.at("special").items(2)
                return Special(self._name(kind), self._name(text))
            return node.number()
        return node.plain()

    def _site(self, node: JsonNode) -> OperatorSite:
        phase, *names = node.items(5)
        module, place, inside_node, inside = map(self._name, names)
        return OperatorSite(phase.choice(Phase), module, place, inside_node, inside)

    def _use(self, node: JsonNode) -> Use:
        signature, site, calls, seconds, expanded, varied = node.items(6)
        return Use(
            signature=signature.entry_of(self._signatures, "signatures"),
            site=site.entry_of(self._sites, "sites"),
            calls=calls.count(),
            seconds=seconds.seconds(),
            expanded=expanded.flag(),
            varied=varied.flag(),
        )
