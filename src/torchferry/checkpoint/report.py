"""What `ferry checkpoint` prints: a page for people, JSON for programs."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torchferry.checkpoint.classes import Meaning, named
from torchferry.checkpoint.keys import wrappers_of
from torchferry.checkpoint.model import Contents, Format, Known, Opaque, Tensor
from torchferry.checkpoint.names import StateDict, parts, state_dicts, tensors_of
from torchferry.checkpoint.repair import Repaired
from torchferry.report.page import Cell, Column, Page, Table
from torchferry.report.safe import shortened
from torchferry.text import Text

_FORMATS: Mapping[Format, Text] = {
    Format.ZIP: Text("a zip archive of torch.save", "torch.save 的 zip 归档"),
    Format.LEGACY: Text("a file of torch.save in its old layout", "torch.save 的旧格式文件"),
    Format.TORCHSCRIPT: Text("a TorchScript archive", "TorchScript 归档"),
    Format.SAFETENSORS: Text("a safetensors file", "safetensors 文件"),
    Format.PICKLE: Text("a plain pickle", "普通 pickle 文件"),
}
_HEAD = Text(
    "{path}: {form}, {size}; {count} tensors, {numbers} numbers",
    "{path}：{form}，{size}；{count} 个张量，{numbers} 个数值",
)
_DEVICES = Text("saved on {devices}; dtypes: {dtypes}", "保存时所在设备：{devices}；数据类型：{dtypes}")
_WEIGHTS = Text("weights: {name}, {count} tensors{prefix}", "权重：{name}，{count} 个张量{prefix}")
_PREFIX = Text("; every name begins with {prefix}", "；所有名称均以 {prefix} 开头")
_ALL = Text("the whole file", "整个文件")
_NEEDED = Text(
    "loading all of it needs classes whose code would run: {names}",
    "完整加载需要以下类，其代码会被执行：{names}",
)
_DANGER = Text(
    "it names what no checkpoint needs, which could run commands or touch files: {names}; do not load it unless you know why",
    "文件引用了检查点不需要的对象，可能执行命令或操作文件：{names}；除非明确原因，否则不要加载",
)
_SAFE = Text("torch.load takes it with weights_only", "可用 weights_only 方式由 torch.load 加载")
_FIX = Text("to clean it: {command}", "清理命令：{command}")
_PARTS = Text("Parts", "组成部分")
_TENSORS = Text("Tensors", "张量")
_BIG = Text("numbers are stored big-endian", "数值以大端序存储")
_SHOWN = 20


def page_of(contents: Contents, *, everything: bool) -> Page:
    """What there is to say about a file."""
    tensors = tensors_of(contents.tree)
    states = state_dicts(contents.tree)
    head = _HEAD.format(
        path=contents.path,
        form=_FORMATS[contents.format],
        size=amount(contents.size),
        count=len(tensors),
        numbers=f"{sum(tensor.elements for tensor in tensors.values()):,}",
    )
    verdicts: list[tuple[Text, str]] = [(head, "bold")]
    if tensors:
        devices, dtypes = (
            _counted(getattr(each, name) for each in tensors.values()) for name in ("device", "dtype")
        )
        verdicts.append((_DEVICES.format(devices=devices, dtypes=dtypes), ""))
    verdicts += [(_state_words(state), "") for state in states]
    verdicts += _class_words(contents)
    notes = [_FIX.format(command=_command(contents, states))] if _command(contents, states) else []
    notes += [_BIG] if contents.is_big_endian else []
    tables = (_parts_table(contents.tree), _tensor_table(tensors, everything))
    return Page(
        Text(f"Checkpoint {contents.path.name}", f"检查点 {contents.path.name}"),
        tuple(verdicts),
        tables,
        tuple(notes),
    )


def _state_words(state: StateDict) -> Text:
    prefix = "".join(wrappers_of(state.tensors))
    said = _PREFIX.format(prefix=prefix) if prefix else Text("", "")
    return _WEIGHTS.format(
        name=Text(state.name, state.name) if state.path else _ALL, count=len(state.tensors), prefix=said
    )


def _class_words(contents: Contents) -> list[tuple[Text, str]]:
    if contents.format in (Format.SAFETENSORS, Format.TORCHSCRIPT):
        return []
    dangerous, needed = (named(contents.globals, each) for each in (Meaning.DANGEROUS, Meaning.NEEDED))
    words = [(_DANGER.format(names=_listed(dangerous)), "bold red")] if dangerous else []
    words += [(_NEEDED.format(names=_listed(needed)), "yellow")] if needed else []
    return words or [(_SAFE, "green")]


def _command(contents: Contents, states: Sequence[StateDict]) -> str:
    """What `ferry checkpoint fix` would do about what was found; "" where there is nothing to do."""
    if not states:
        return ""
    state = states[0]
    words = [f"--only {shlex.quote(state.name)}"] if state.path else []
    words += [f"--strip {prefix}" for prefix in wrappers_of(state.tensors)]
    kinds = sorted({tensor.device.split(":")[0] for tensor in state.tensors.values()} - {"cpu"})
    words += [f"--map {kind}:cpu" for kind in kinds]
    return (
        f"ferry checkpoint fix {shlex.quote(str(contents.path))} -o clean.pth {' '.join(words)}"
        if words
        else ""
    )


def _parts_table(tree: object) -> Table:
    columns = (
        Column(Text("part", "部分"), is_whole=True),
        Column(Text("tensors", "张量"), is_number=True),
        Column(Text("size", "大小"), is_number=True),
        Column(Text("what it is", "内容")),
    )
    inside = parts(tree)
    if any(isinstance(part, Tensor) for part in inside.values()) or not isinstance(tree, dict):
        return Table(_PARTS, columns, ())
    rows = [_part_row(str(key), part) for key, part in inside.items()]
    return Table(_PARTS, columns, tuple(rows[:_SHOWN]), max(0, len(rows) - _SHOWN))


def _part_row(key: str, part: object) -> tuple[Cell, ...]:
    tensors = tensors_of(part)
    size = amount(unique_bytes(tensors.values())) if tensors else ""
    return (
        Cell(key, is_code=True),
        Cell(str(len(tensors) or "")),
        Cell(size),
        Cell(shortened(described(part), 60)),
    )


def _tensor_table(tensors: Mapping[str, Tensor], everything: bool) -> Table:
    columns = (
        Column(Text("tensor", "张量")),
        Column(Text("shape", "形状"), is_whole=True),
        Column(Text("dtype", "类型"), is_whole=True),
        Column(Text("device", "设备"), is_whole=True),
        Column(Text("size", "大小"), is_number=True),
    )
    rows = [
        (
            Cell(name, is_code=True),
            Cell("x".join(map(str, tensor.shape)) or "-"),
            Cell(tensor.dtype or "?"),
            Cell(tensor.device),
            Cell(amount(tensor.nbytes)),
        )
        for name, tensor in tensors.items()
    ]
    shown = len(rows) if everything else _SHOWN
    return Table(_TENSORS, columns, tuple(rows[:shown]), max(0, len(rows) - shown))


def described(part: object) -> str:
    """A part that is no tensor, in a word."""
    if isinstance(part, Opaque):
        return part.class_name
    if isinstance(part, dict):
        return f"{len(part)} entries"
    if isinstance(part, (list, tuple)):
        return f"{type(part).__name__} of {len(part)}"
    if isinstance(part, (bytes, bytearray)):
        return f"{len(part):,} bytes"
    if isinstance(part, Known):
        return f"{part.name}({', '.join(map(str, part.arguments))})"
    return (
        repr(part) if isinstance(part, (str, int, float, bool, type(None), complex)) else type(part).__name__
    )


def unique_bytes(tensors: Iterable[Tensor]) -> int:
    """The bytes of tensors, what they share counted once."""
    seen: dict[object, int] = {}
    for tensor in tensors:
        seen[tensor.storage.key, tensor.offset, tensor.shape, tensor.strides] = tensor.nbytes
    return sum(seen.values())


def _counted(values: Iterable[str]) -> str:
    counts = Counter(values)
    if len(counts) == 1:
        return next(iter(counts)) or "?"
    return ", ".join(f"{value or '?'} ({count})" for value, count in counts.most_common())


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f", +{len(names) - 6}" if len(names) > 6 else "")


def amount(size: int) -> str:
    """Bytes in a unit that can be read."""
    value = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"


def to_json(contents: Contents) -> str:
    """Everything, for programs."""
    tensors = tensors_of(contents.tree)
    data: dict[str, Any] = {
        "path": str(contents.path),
        "format": contents.format.value,
        "bytes": contents.size,
        "parts": {
            str(key): described(part)
            for key, part in parts(contents.tree).items()
            if not isinstance(part, Tensor)
        },
        "state_dicts": [
            {"name": state.name, "tensors": len(state.tensors), "prefixes": wrappers_of(state.tensors)}
            for state in state_dicts(contents.tree)
        ],
        "classes": {each.value: named(contents.globals, each) for each in Meaning},
        "metadata": dict(contents.metadata),
        "tensors": {
            name: {
                "shape": tensor.shape,
                "dtype": tensor.dtype,
                "device": tensor.device,
                "bytes": tensor.nbytes,
            }
            for name, tensor in tensors.items()
        },
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


_WROTE = Text("wrote {path}: {count} tensors, {size}", "已写入 {path}：{count} 个张量，{size}")
_STRIPPED = Text("took {prefix} off {count} names", "从 {count} 个名称中去掉了 {prefix}")
_MOVED = Text("{old} is now {new}, for {count} storages", "{count} 个存储由 {old} 改为 {new}")
_LEFT = Text("left out: {names}", "未保留：{names}")
_RAN = Text(
    "code that the file names has run, as --allow-pickle says", "已按 --allow-pickle 执行了文件引用的代码"
)


def repaired_page(done: Repaired) -> Page:
    """What was done to a file."""
    said = [(_WROTE.format(path=done.output, count=done.tensors, size=amount(done.size)), "bold")]
    said += [(_STRIPPED.format(prefix=prefix, count=count), "") for prefix, count in done.stripped]
    said += [(_MOVED.format(old=old, new=new, count=count), "") for old, new, count in done.moved]
    said += [(_LEFT.format(names=_listed(done.left_out)), "")] if done.left_out else []
    said += [(_RAN, "yellow")] if done.ran_code else []
    return Page(Text("Checkpoint mended", "检查点已修复"), tuple(said))
