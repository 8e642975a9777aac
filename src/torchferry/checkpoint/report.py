"""What `ferry checkpoint` prints: a page for people, JSON for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torchferry import units
from torchferry.checkpoint.classes import LoadingNeed, named
from torchferry.checkpoint.model import LOCAL_PART, Checkpoint, FileFormat, Repaired, TensorEntry
from torchferry.checkpoint.names import (
    StateDict,
    described,
    key_name,
    parts,
    state_dicts,
    tensors_of,
    wrappers_of,
)
from torchferry.report.commands import ferry_command
from torchferry.report.formats import Options, Reports
from torchferry.report.json import head
from torchferry.report.page import Cell, Column, Page, Table
from torchferry.report.safe import shortened
from torchferry.text import Text

_FORMATS: Mapping[FileFormat, Text] = {
    FileFormat.ZIP: Text("a zip archive of torch.save", "torch.save 的 zip 归档"),
    FileFormat.LEGACY: Text("a file of torch.save in its old format", "torch.save 的旧格式文件"),
    FileFormat.TORCHSCRIPT: Text("a TorchScript archive", "TorchScript 归档"),
    FileFormat.SAFETENSORS: Text("a safetensors file", "safetensors 文件"),
    FileFormat.PICKLE: Text("a plain pickle", "普通 pickle 文件"),
    FileFormat.NUMPY: Text("NumPy arrays", "NumPy 数组"),
    FileFormat.SHARDED: Text("shards with an index", "带索引的分片"),
    FileFormat.DISTRIBUTED: Text(
        "a folder of torch.distributed.checkpoint", "torch.distributed.checkpoint 文件夹"
    ),
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
    "loading it completely needs classes whose code would run: {names}",
    "完整加载需要以下类，其代码会被执行：{names}",
)
_VALUES = Text(
    "harmless values that torch.load rejects with weights_only: {names}; fix --plain writes them "
    "without their classes",
    "包含 weights_only 方式会拒绝的无害值：{names}；fix --plain 会去掉其类后写出",
)
_DANGER = Text(
    "it refers to objects that no checkpoint needs and that could run commands or access files: "
    "{names}; do not load it unless you know why",
    "文件引用了 checkpoint 不需要的对象，可能执行命令或访问文件：{names}；除非明确原因，否则不要加载",
)
_SAFE = Text("torch.load accepts it with weights_only", "可用 weights_only 方式由 torch.load 加载")
_FIX = Text("to clean it: {command}", "清理命令：{command}")
_PARTS = Text("Parts", "组成部分")
_TENSORS = Text("Tensors", "张量")
_OTHERS = Text("also in the folder: {names}", "文件夹中还有：{names}")
_ONE_PROCESS = Text(
    "{count} tensors are parts of distributed tensors; the rest is in the files of the other processes",
    "{count} 个张量只是分布式张量的一部分：其余部分在其他进程的文件中",
)
_SEVERAL = Text(
    "weights are in {count} parts; the command uses {first}, choose another with --part",
    "权重分布在 {count} 个部分；上述命令取 {first}，其余请用 --part 指定",
)
_SHARED = Text("{count} names share their data with others", "{count} 个名称与其他名称共享数值")
_BIG = Text("numbers are stored big-endian", "数值以大端序存储")
_SHOWN = 20
_LONGEST_NAME = 120


REPORTS: Reports[Checkpoint] = Reports({"json": f"{__name__}:to_json"}, page=f"{__name__}:page_of")
REPAIRS: Reports[Repaired] = Reports(page=f"{__name__}:repaired_page")


def page_of(contents: Checkpoint, options: Options) -> Page:
    """What there is to say about a file."""
    tensors = tensors_of(contents.tree)
    states = state_dicts(contents.tree)
    head = _HEAD.format(
        path=contents.path,
        form=_FORMATS[contents.format],
        size=units.size(contents.size),
        count=len(tensors),
        numbers=f"{sum(tensor.elements for tensor in tensors.values()):,}",
    )
    verdicts: list[tuple[Text, str]] = [(head, "bold")]
    if tensors:
        counted = []
        for attribute in ("device", "dtype"):
            counts = Counter(getattr(each, attribute) for each in tensors.values())
            many = ", ".join(f"{value or '?'} ({count})" for value, count in counts.most_common())
            counted.append(many if len(counts) > 1 else next(iter(counts)) or "?")
        verdicts.append((_DEVICES.format(devices=counted[0], dtypes=counted[1]), ""))
    for state in states:
        prefix = "".join(wrappers_of(state.tensors))
        said = _PREFIX.format(prefix=prefix) if prefix else Text("", "")
        name = state.name if state.path else _ALL
        verdicts.append((_WEIGHTS.format(name=name, count=len(state.tensors), prefix=said), ""))
    local = sum(name.endswith(f".{LOCAL_PART}") for name in tensors)
    verdicts += [(_ONE_PROCESS.format(count=local), "yellow")] if local else []
    verdicts += _class_words(contents)
    notes = []
    if command := _command(contents, states):
        notes.append(_FIX.format(command=command))
        models = [state for state in states if not state.is_average]
        if len(models) > 1:
            notes.append(_SEVERAL.format(count=len(models), first=states[0].name))
    notes += [_BIG] if contents.is_big_endian else []
    shared = len(tensors) - len({_where(tensor) for tensor in tensors.values()})
    notes += [_SHARED.format(count=shared)] if shared else []
    if contents.others:
        notes.append(_OTHERS.format(names=_listed([path.name for path in contents.others])))
    tables = (_parts_table(contents.tree), _tensor_table(tensors, options.everything))
    return Page(
        Text(f"Checkpoint {contents.path.name}", f"checkpoint {contents.path.name}"),
        tuple(verdicts),
        tables,
        tuple(notes),
    )


def _class_words(contents: Checkpoint) -> list[tuple[Text, str]]:
    if contents.format is FileFormat.TORCHSCRIPT:
        return []
    kinds = (
        (LoadingNeed.DANGEROUS, _DANGER, "bold red"),
        (LoadingNeed.NEEDED, _NEEDED, "yellow"),
        (LoadingNeed.VALUE, _VALUES, "yellow"),
    )
    found = [(words, named(contents.globals, kind), style) for kind, words, style in kinds]
    said = [(words.format(names=_listed(names)), style) for words, names, style in found if names]
    is_of_torch = contents.format in (FileFormat.ZIP, FileFormat.LEGACY)
    return said or ([(_SAFE, "green")] if is_of_torch else [])


def _command(contents: Checkpoint, states: Sequence[StateDict]) -> str:
    """What `ferry checkpoint fix` would do about what was found; "" where there is nothing to do."""
    if not states:
        return ""
    state = states[0]
    words = ["--part", state.name] if state.path else []
    words += [word for prefix in wrappers_of(state.tensors) for word in ("--strip", prefix)]
    kinds = sorted({tensor.device.split(":")[0] for tensor in state.tensors.values()} - {"cpu", "meta"})
    words += [word for kind in kinds for word in ("--map", f"{kind}:cpu")]
    is_of_torch = contents.format in (FileFormat.ZIP, FileFormat.LEGACY)
    needs_code = is_of_torch and named(contents.globals, LoadingNeed.NEEDED)
    is_whole = contents.format not in (FileFormat.SHARDED, FileFormat.DISTRIBUTED) and not needs_code
    command = ferry_command("checkpoint", "fix", contents.path, "-o", "clean.pth", *words)
    return "" if is_whole and not words else command


def _parts_table(tree: object) -> Table:
    columns = (
        Column(Text("part", "部分"), is_whole=True),
        Column(Text("tensors", "张量"), is_number=True),
        Column(Text("size", "大小"), is_number=True),
        Column(Text("what it is", "内容")),
    )
    inside = parts(tree)
    if any(isinstance(part, TensorEntry) for part in inside.values()) or not isinstance(tree, dict):
        return Table(_PARTS, columns, ())
    rows = []
    for key, part in inside.items():
        tensors = tensors_of(part)
        size = units.size(unique_bytes(tensors.values())) if tensors else ""
        words = Text(*(shortened(each, 60) for each in described(part)))
        count = str(len(tensors) or "")
        rows.append((Cell(key_name(key), is_code=True), Cell(count), Cell(size), Cell(words)))
    return Table(_PARTS, columns, tuple(rows[:_SHOWN]), max(0, len(rows) - _SHOWN))


def _tensor_table(tensors: Mapping[str, TensorEntry], everything: bool) -> Table:
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
            Cell(units.size(tensor.nbytes)),
        )
        for name, tensor in tensors.items()
    ]
    shown = len(rows) if everything else _SHOWN
    return Table(_TENSORS, columns, tuple(rows[:shown]), max(0, len(rows) - shown))


def unique_bytes(tensors: Iterable[TensorEntry]) -> int:
    """The bytes of tensors, what they share counted once."""
    return sum({_where(tensor): tensor.nbytes for tensor in tensors}.values())


def _where(tensor: TensorEntry) -> tuple[object, ...]:
    return tensor.storage.key, tensor.offset, tensor.shape, tensor.strides


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(shortened(name, _LONGEST_NAME) for name in names[:6])
    return shown + (f", +{len(names) - 6}" if len(names) > 6 else "")


def to_json(contents: Checkpoint, options: Options) -> str:
    """The description of a checkpoint as JSON."""
    tensors = tensors_of(contents.tree)
    data: dict[str, Any] = {
        **head("torchferry-checkpoint"),
        "path": str(contents.path),
        "layout": contents.format.value,
        "bytes": contents.size,
        "parts": {
            key_name(key): described(part).en
            for key, part in parts(contents.tree).items()
            if not isinstance(part, TensorEntry)
        },
        "state_dicts": [
            {"name": state.name, "tensors": len(state.tensors), "prefixes": wrappers_of(state.tensors)}
            for state in state_dicts(contents.tree)
        ],
        "classes": {each.value: named(contents.globals, each) for each in LoadingNeed},
        "metadata": dict(contents.metadata),
        "others": [path.name for path in contents.others],
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
_STRIPPED = Text("removed {old} from {count} names", "从 {count} 个名称中去掉了 {old}")
_ADDED = Text("added {new} before {count} names", "在 {count} 个名称前加上了 {new}")
_RENAMED = Text(
    "{count} names now begin with {new} instead of {old}", "{count} 个名称的开头由 {old} 改为 {new}"
)
_CAST = Text("{count} weights are now {dtype}", "{count} 个权重已转换为 {dtype}")
_INFINITE = Text(
    "{count} numbers are too large for {dtype} and became infinite",
    "{count} 个数值超出 {dtype} 范围，已变为无穷大",
)
_PLAIN = Text("without their classes: {names}", "已去掉类：{names}")
_TWICE = Text(
    "{count} weights shared their data with others and are written separately, because safetensors "
    "can't share data",
    "{count} 个权重原本与其他权重共享数值，现单独写出：safetensors 无法表示共享",
)
_METADATA = Text(
    "the metadata in the header of the safetensors file was not kept", "safetensors 文件头中的元数据未保留"
)
_MOVED = Text("{old} is now {new}, for {count} storages", "{count} 个存储由 {old} 改为 {new}")
_LEFT = Text("not kept: {names}", "未保留：{names}")
_RAN = Text(
    "code named in the file was run, as allowed by --allow-pickle", "已按 --allow-pickle 执行了文件引用的代码"
)


def repaired_page(done: Repaired, options: Options) -> Page:
    """What was done to a file."""
    said = [(_WROTE.format(path=done.output, count=done.tensors, size=units.size(done.size)), "bold")]
    for old, new, count in done.renamed:
        sentence = _RENAMED if old and new else _ADDED if new else _STRIPPED
        said.append((sentence.format(old=old, new=new, count=count), ""))
    if done.cast:
        said.append((_CAST.format(count=done.cast.tensors, dtype=done.cast.dtype), ""))
    if done.cast and done.cast.infinite:
        said.append((_INFINITE.format(count=done.cast.infinite, dtype=done.cast.dtype), "yellow"))
    said += [(_MOVED.format(old=old, new=new, count=count), "") for old, new, count in done.moved]
    if done.made_plain:
        names = _listed([f"{name} ({kind})" for name, kind in done.made_plain])
        said.append((_PLAIN.format(names=names), ""))
    said += [(_TWICE.format(count=done.written_twice), "yellow")] if done.written_twice else []
    said += [(_LEFT.format(names=_listed(done.left_out)), "")] if done.left_out else []
    said += [(_METADATA, "")] if done.lost_metadata else []
    said += [(_RAN, "yellow")] if done.ran_code else []
    return Page(Text("Checkpoint repaired", "checkpoint 已修复"), tuple(said))
