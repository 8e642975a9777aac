"""What a built-in vendor must say, and what to write where something is missing: `ferry vendors --check`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torchferry.text import Text
from torchferry.vendors.error_patterns import ErrorTable, load_errors
from torchferry.vendors.model import MissingOperator, Narrowing, Replacement, Support, Vendor
from torchferry.vendors.ops import Ops, load_ops
from torchferry.vendors.registry import load_vendor
from torchferry.vendors.schema import (
    ERRORS_FILE,
    LIBRARIES_FILE,
    OFFLINE_FILE,
    OLD_NAMES_FILE,
    OPS_FILE,
    RECORDS,
    SIMILAR_FILE,
    VENDOR_FILE,
    ZOO_FILE,
    read_table,
    record_type,
)
from torchferry.vendors.similar import Similar, load_similar

_MAY_BE_MISSING = (ZOO_FILE, OFFLINE_FILE, LIBRARIES_FILE, OLD_NAMES_FILE)
# Reports speak of these in programs: of each a reader wants to know what this vendor has instead, or that it has nothing.
REPORTED = (
    *("flash_attn", "xformers", "triton", "bitsandbytes", "apex.amp", "pynvml", "nvidia_smi", "nvidia.dali"),
    *("tensorrt", "torch_tensorrt", "cupy", "numba.cuda", "pycuda", "transformer_engine", "torch_scatter"),
    *("torch.utils.cpp_extension.CUDAExtension", "torch.utils.cpp_extension.load_inline"),
    *("torch.nn.DataParallel", "torch.cuda.nvtx", "torch.cuda.CUDAGraph", "torch.jit.script"),
)
_OPERATOR = "aten::special_entr.out"  # any: it stands for one that a device lacks
_SIZES = dict.fromkeys(("wanted", "total", "allocated", "reserved", "free"), "1.50 GiB")
_SOURCES = Text("[[sources]]: where its facts come from", "[[sources]]：数据来源")
_IN_CHINESE = Text("{key}_zh of {where}", "{where} 的 {key}_zh")


class Folder:
    """A vendor's folder: its tables, each read when a demand asks for it."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.vendor: Vendor = load_vendor(self.path)

    @cached_property
    def ops(self) -> Ops:
        """What ops.txt says."""
        return load_ops(self.path)

    @cached_property
    def errors(self) -> ErrorTable:
        """What errors.toml says, and that for all vendors."""
        return load_errors(self.path)

    @cached_property
    def similar(self) -> tuple[Similar, ...]:
        """What similar.toml says."""
        return load_similar(str(self.path))

    def replacement(self, name: str) -> Replacement:
        """That of one name; one that says nothing if there is none."""
        found = (entry for entry in self.vendor.replacements if entry.cuda == name)
        return next(found, Replacement(cuda=name, use=""))

    def recognised(self, message: str) -> tuple[str, str]:
        """The kind of error that the first matching pattern names, and the operator that it finds."""
        for pattern in self.errors.patterns:
            match = re.search(pattern.regex, message) if pattern.regex else None
            if match:
                return pattern.kind, match.groupdict().get("op") or ""
        return "", ""


@dataclass(frozen=True)
class Demand:
    """One thing that is asked of a vendor's folder, and what to write, by file, where it is not there."""

    title: Text
    lacking: Callable[[Folder], Iterator[tuple[str, Text]]]


def _same(text: str) -> Text:
    return Text(text, text)


def _identity(folder: Folder) -> Iterator[tuple[str, Text]]:
    vendor = folder.vendor
    if vendor.name != folder.path.name:
        yield VENDOR_FILE, _same(f'name = "{folder.path.name}"')
    if not vendor.torch_module.startswith("torch."):
        yield VENDOR_FILE, _same(f'torch_module = "torch.{vendor.device_type}"')
    if vendor.is_attribute != f"is_{vendor.tensor_method}":
        yield VENDOR_FILE, _same(f'is_attribute = "is_{vendor.tensor_method}"')
    if not vendor.company_zh:
        yield VENDOR_FILE, _same('company_zh = "..."')


def _visible_devices(folder: Folder) -> Iterator[tuple[str, Text]]:
    vendor = folder.vendor
    if not vendor.visible_devices_env:
        yield VENDOR_FILE, _same('visible_devices_env = "..."')
    if vendor.env_map.get("CUDA_VISIBLE_DEVICES") != vendor.visible_devices_env:
        yield VENDOR_FILE, _same(f'[env_map] CUDA_VISIBLE_DEVICES = "{vendor.visible_devices_env}"')
    for cuda, own in vendor.env_map.items():
        if own and not re.fullmatch(r"[A-Z][A-Z0-9_]+", own):
            yield VENDOR_FILE, _same(f'[env_map] {cuda} = "VARIABLE"')


def _sources(folder: Folder) -> Iterator[tuple[str, Text]]:
    for name in RECORDS:
        file = folder.path / name
        if file.exists():
            if not read_table(file).get("sources"):
                yield name, _SOURCES
        elif name not in _MAY_BE_MISSING:
            english, chinese = "the file; where nothing is known, ", "该文件；一无所知时写 "
            yield name, Text(f"{english}{_SOURCES.en}", f"{chinese}{_SOURCES.zh}")
    if folder.ops.kernels and not folder.ops.sources:
        yield OPS_FILE, _same("# source: NAME | VERSION | PATH")


def _translations(folder: Folder) -> Iterator[tuple[str, Text]]:
    """Each text that has a Chinese form has one."""
    for name in RECORDS:
        file = folder.path / name
        if not file.exists():
            continue
        data = read_table(file)
        for key, row in _rows_of(name, data):
            if row.get(key) and not row.get(f"{key}_zh"):
                where = str(row.get("id") or row.get("name") or row.get("cuda") or name)
                yield name, _IN_CHINESE.format(key=key, where=where)
        for code in data.get("codes", {}).keys() - data.get("codes_zh", {}).keys():
            yield name, _same(f'[codes_zh] {code} = "..."')


def _rows_of(name: str, data: dict[str, object]) -> Iterator[tuple[str, dict[str, object]]]:
    from torchferry.vendors.keys import fields_of

    for _, key_name, key in fields_of(record_type(name)):
        if key.translated:
            yield key_name, data
        table = data.get(key_name)
        if key.record and isinstance(table, list):
            inner = [each for _, each, its in fields_of(key.record) if its.translated]
            yield from ((each, row) for row in table for each in inner)


def _apis(folder: Folder) -> Iterator[tuple[str, Text]]:
    vendor = folder.vendor
    for name in ("torch.cuda.set_device", "torch.Tensor.get_device"):
        natural = name.replace("torch.cuda", vendor.torch_module)
        if vendor.api(name).name != natural:
            yield "apis.toml", _same(f'[apis] "{name}" = "same"')
    for cuda, api in vendor.apis.items():
        if api.support is Support.UNSUPPORTED:
            continue
        still_cuda = cuda.startswith("torch.cuda.") and "cuda" in api.name.split(".")
        if still_cuda or not re.fullmatch(r"\w+(\.\w+)+", api.name):
            lacks = Text(
                f'[apis] "{cuda}": a full name without cuda', f'[apis] "{cuda}"：不含 cuda 的完整名称'
            )
            yield "apis.toml", lacks
        elif api.support is Support.RENAMED and api.name == cuda:
            yield "apis.toml", _same(f'[apis] "{cuda}" = "same"')


def _libraries(folder: Folder) -> Iterator[tuple[str, Text]]:
    known = {entry.cuda for entry in folder.vendor.replacements}
    for name in REPORTED:
        if name not in known:
            yield "replacements.toml", _same(f'[[replacements]] cuda = "{name}", use = ""')


def _replacements(folder: Folder) -> Iterator[tuple[str, Text]]:
    vendor = folder.vendor
    for name, automatic in (
        ("apex.normalization.FusedLayerNorm", "torch.nn.LayerNorm"),
        ("apex.parallel.DistributedDataParallel", ""),
    ):
        entry = folder.replacement(name)
        if entry not in vendor.replacements or entry.automatic != automatic:
            yield "replacements.toml", _same(f'[[replacements]] cuda = "{name}", automatic = "{automatic}"')
    if vendor.smi and not folder.replacement("pynvml").use.startswith(vendor.smi):
        yield "replacements.toml", _same(f'[[replacements]] cuda = "pynvml", use = "{vendor.smi}"')
    names = [entry.cuda for entry in vendor.replacements]
    for name in {name for name in names if names.count(name) > 1}:
        yield "replacements.toml", Text(f"one entry for {name}", f"{name} 只保留一项")
    for entry in vendor.replacements:
        module, _, name = entry.automatic.rpartition(".")
        if module and module == vendor.fused_optimizer_module and name not in vendor.fused_optimizers:
            yield VENDOR_FILE, _same(f'fused_optimizers = ["{name}"]')


def _operators(folder: Folder) -> Iterator[tuple[str, Text]]:
    ops, vendor = folder.ops, folder.vendor
    newest = ops.versions[-1] if ops.complete and ops.versions else ""
    if vendor.limits.operator_version != newest:
        yield VENDOR_FILE, _same(f'[limits] operator_version = "{newest}"')
    unlisted = {version for found in ops.kernels.values() for version in found} - set(ops.versions)
    if ops.complete and unlisted:
        yield OPS_FILE, _same(f"# versions: {' '.join((*ops.versions, *sorted(unlisted)))}")
    if ops.complete and not (len(ops.kernels) > 500 and (ops.has_kernel("mm") or ops.has_kernel("mm.out"))):
        lacks = Text(
            "# complete: no, as fewer operators are listed than a training needs",
            "# complete: no（列出的算子少于训练所需）",
        )
        yield OPS_FILE, lacks


def _messages(folder: Folder) -> Iterator[tuple[str, Text]]:
    """What the adapter says of its limits, `ferry explain` knows."""
    limits = folder.vendor.limits
    missing = (limits.missing_message, limits.raise_when_message)
    wanted = [("unsupported_op", each, {"backend": limits.backend_name}) for each in missing]
    wanted.append(("oom", limits.out_of_memory_message, {"device": "3", **_SIZES}))
    wanted.append(("cpu_fallback", limits.fallback_message, {}))
    for dtype, limit in limits.dtypes.items():
        if limit.narrowing is Narrowing.REFUSED:
            wanted.append(("dtype", limit.message, {"dtype": dtype}))
    for kind, wording, values in wanted:
        if not wording:
            continue
        message = wording.format(operator=_OPERATOR, **values)
        found, operator = folder.recognised(message)
        named = {_OPERATOR} if kind == "cpu_fallback" else {"", _OPERATOR, _OPERATOR.removeprefix("aten::")}
        if found != kind or (kind in ("unsupported_op", "cpu_fallback") and operator not in named):
            lacks = Text(
                f'[[errors]] class = "{kind}", a regex (?P<op>...) for: {message}',
                f'[[errors]] class = "{kind}"，regex（用 (?P<op>...) 取算子）对应：{message}',
            )
            yield ERRORS_FILE, lacks


def _error_patterns(folder: Folder) -> Iterator[tuple[str, Text]]:
    ids = [pattern.id for pattern in folder.errors.patterns]
    for pattern in folder.errors.patterns:
        if not (pattern.regex or pattern.codes):
            yield ERRORS_FILE, Text(f"regex or codes of {pattern.id}", f"{pattern.id} 的 regex 或 codes")
        if not pattern.source:
            yield ERRORS_FILE, Text(f"source of {pattern.id}", f"{pattern.id} 的 source")
        if ids.count(pattern.id) > 1:
            yield ERRORS_FILE, Text(f"another id for {pattern.id}", f"为 {pattern.id} 换一个 id")


def _limits(folder: Folder) -> Iterator[tuple[str, Text]]:
    """The limits fit each other, and the variables that switch them are explained."""
    vendor, limits = folder.vendor, folder.vendor.limits
    if not limits.backend_name and "{backend}" in limits.missing_message + limits.raise_when_message:
        yield VENDOR_FILE, _same('[limits] backend_name = "..."')
    falls_back = limits.missing_operator is MissingOperator.FALLS_BACK
    for key, value, wanted in (
        ("fallback_message", limits.fallback_message, falls_back),
        ("raise_when", limits.raise_when, falls_back),
        ("fall_back_when", limits.fall_back_when, False if falls_back else bool(limits.fall_back_when)),
    ):
        if bool(value) != wanted:
            add = Text(f"[limits] {key}", f"[limits] {key}")
            yield VENDOR_FILE, add if wanted else Text(f"no {key} in [limits]", f"[limits] 中不写 {key}")
    for dtype, limit in limits.dtypes.items():
        if bool(limit.becomes) == (limit.narrowing is Narrowing.REFUSED):
            lacks = Text(
                f"[limits.dtypes.{dtype}] becomes, unless it is refused",
                f"[limits.dtypes.{dtype}] becomes（refused 时不写）",
            )
            yield VENDOR_FILE, lacks
    settings = [*limits.raise_when, *limits.fall_back_when]
    settings += [setting for limit in limits.dtypes.values() for setting in limit.when]
    for variable in dict.fromkeys(setting.partition("=")[0] for setting in settings):
        if vendor.env and variable not in vendor.env:
            yield VENDOR_FILE, _same(f'[env] {variable} = "..."')


def _equivalents(folder: Folder) -> Iterator[tuple[str, Text]]:
    """An operator that is said to have no kernel has none by the table of operators."""
    ops, limits = folder.ops, folder.vendor.limits
    bases = {(name.partition(".")[0], version) for name, has in ops.kernels.items() for version in has}
    for entry in folder.similar:
        said = re.search(r"operator table of adapter version (\S+): no (\S+)", entry.source)
        if said is None:
            continue
        version, names = said[1], said[2].split("|")
        listed = [
            name
            for name in names
            if (ops.has_kernel(name, version) if "." in name else (name, version) in bases)
        ]
        does = "raises" if limits.missing_operator is MissingOperator.RAISES else "falls back to the CPU"
        if version != limits.operator_version or listed or not ops.complete:
            yield (
                SIMILAR_FILE,
                Text(f"nothing on {said[2]}, which has a kernel", f"删除 {said[2]}：它有 kernel"),
            )
        elif does not in entry.why.en:
            lacks = Text(f'"{does}" in why of {entry.cuda}', f"{entry.cuda} 的 why 中写明“{does}”")
            yield SIMILAR_FILE, lacks


DEMANDS = (
    Demand(Text("Names match each other", "各名称一致"), _identity),
    Demand(
        Text("Variables, that of the visible devices with them", "环境变量，包括可见设备变量"),
        _visible_devices,
    ),
    Demand(Text("Every table names its sources", "每张表注明来源"), _sources),
    Demand(Text("Texts for users in both languages", "面向用户的文字有中英两种语言"), _translations),
    Demand(Text("Names of torch.cuda", "torch.cuda 的名称"), _apis),
    Demand(Text("Libraries that reports mention", "报告会提到的库"), _libraries),
    Demand(Text("Replacements", "替代方案"), _replacements),
    Demand(Text("Operators", "算子"), _operators),
    Demand(Text("Error messages are explained", "错误信息有解释"), _messages),
    Demand(Text("Patterns of errors", "错误模式"), _error_patterns),
    Demand(Text("Limits of a simulated device", "模拟设备的限制"), _limits),
    Demand(Text("Equivalents agree with the operators", "等价写法与算子表一致"), _equivalents),
)
