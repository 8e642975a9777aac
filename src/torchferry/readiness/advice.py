"""What a user can do about an operator that a device lacks or limits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from torchferry.operators.compositions import compositions_for
from torchferry.operators.native_functions import OperatorFacts
from torchferry.operators.support import SupportBasis, VendorTable, served_by, standing
from torchferry.readiness.model import (
    Advice,
    OperatorSupport,
    Phase,
    Remedy,
    Signature,
    TensorSpec,
    Use,
    Value,
)
from torchferry.text import Text
from torchferry.vendors.model import Vendor
from torchferry.vendors.similar import load_similar

OTHER_VERSION = Text(
    "The plugin for torch {versions} has a kernel for it.",
    "torch {versions} 的插件有它的 kernel。",
)
COMPOSITION = Text(
    "Write {name} with other operators, all of which the device supports.",
    "用设备都支持的其他算子改写 {name}。",
)
COMPOSITION_IF = Text(
    "Write {name} with other operators, all of which the device supports; condition: {condition}.",
    "用设备都支持的其他算子改写 {name}；适用条件：{condition}。",
)
VENDOR_OPERATOR = Text("The vendor has its own variant of {name}.", "厂商提供自己的 {name}。")
VENDOR_OPERATOR_IF = Text(
    "The vendor has its own variant of {name}: {remark}.", "厂商提供自己的 {name}：{remark}。"
)
STAYS_ON_CPU = Text(
    "The plugin computes it on the CPU in every call; where many such calls follow each other, move "
    "the tensors there once, before the first call.",
    "插件每次调用都在 CPU 上计算它；若多个这样的调用相连，可在第一个之前把张量一次移到 CPU。",
)
KEEP_ON_CPU = Text(
    "Compute it on the CPU: two copies in every call.", "在 CPU 上计算：每次调用往返拷贝一次。"
)
BACKWARD_ON_CPU = Text(
    "It belongs to the backward pass: compute the forward call on the CPU, and its backward pass "
    "runs there as well.",
    "它属于反向传播：把对应的前向调用放到 CPU 上计算，反向也会随之在 CPU 上进行。",
)
OTHER_DTYPE = Text("Use tensors of {dtypes}.", "改用 {dtypes} 张量。")
COMPOSITION_SOURCE = "torchferry/operators/compositions.toml, run against the original by the tests"

# operators of optimizers, of which a vendor may have a fused form of its own
_OPTIMIZERS = {
    "_fused_adam_": "torch.optim.Adam",
    "_fused_adamw_": "torch.optim.AdamW",
    "_fused_sgd_": "torch.optim.SGD",
    "_fused_adagrad_": "torch.optim.Adagrad",
}
_MODULES = ("torch", "torch.nn.functional", "torch.linalg", "torch.special", "torch.fft")


class Adviser:
    """Advice for one vendor in one adapter version."""

    def __init__(self, vendor: Vendor, table: VendorTable, facts: Mapping[str, OperatorFacts]) -> None:
        self._vendor = vendor
        self._table = table
        self._facts = facts
        self._siblings = served_by(facts)
        self._known: dict[tuple[str, str], bool] = {}

    def advise(self, use: Use, support: OperatorSupport) -> tuple[Advice, ...]:
        """What can be done, the best first."""
        namespace, _, name = use.operator.partition("::")
        if namespace != "aten":
            return ()
        if support is OperatorSupport.LIMITED:
            return tuple(self._other_dtypes(name, use))
        if use.site.phase is Phase.BACKWARD:
            on_cpu = Advice(Remedy.KEEP_ON_CPU, BACKWARD_ON_CPU)
        else:
            text = STAYS_ON_CPU if support is OperatorSupport.FALLBACK else KEEP_ON_CPU
            on_cpu = Advice(Remedy.KEEP_ON_CPU, text, _code_on_cpu(use.signature))
        compositions = []
        for composition in compositions_for(name):
            if all(self._has(used, self._table.version) for used in composition.uses):
                sentence = COMPOSITION_IF if composition.condition.en else COMPOSITION
                text = sentence.format(name=composition.name, condition=composition.condition)
                compositions.append(Advice(Remedy.COMPOSITION, text, composition.python, COMPOSITION_SOURCE))
        return (*self._vendor_operators(name), *compositions, *self._versions(name), on_cpu)

    def _versions(self, name: str) -> Iterator[Advice]:
        versions = [version for version in self._table.ops.versions if version != self._table.version]
        others = [version for version in versions if self._has(name, version)]
        if others:
            source = "; ".join(dict.fromkeys(source.name for source in self._table.ops.sources))
            yield Advice(
                Remedy.OTHER_VERSION, OTHER_VERSION.format(versions=", ".join(others)), source=source
            )

    def _vendor_operators(self, name: str) -> Iterator[Advice]:
        """From the vendor's table of similar functions, those that are its own."""
        base = name.partition(".")[0]
        names = {f"{module}.{base}" for module in _MODULES} | {_OPTIMIZERS.get(base, "")} - {""}
        names |= {f"torch.{area}.{base.removeprefix(area + '_')}" for area in ("linalg", "special", "fft")}
        for similar in load_similar(self._vendor.folder):
            own = self._vendor.plugin and similar.use.startswith(self._vendor.plugin)
            if own and not similar.when and not names.isdisjoint((similar.cuda, *similar.also)):
                sentence = VENDOR_OPERATOR_IF if similar.remark.en else VENDOR_OPERATOR
                code = re.sub(r"\[\[|\]\]", "", re.sub(r"\{(\w+)\}", r"\1", similar.use))
                text = sentence.format(name=similar.cuda, remark=similar.remark)
                yield Advice(Remedy.VENDOR_OPERATOR, text, code, similar.source)

    def _other_dtypes(self, name: str, use: Use) -> Iterator[Advice]:
        limits = self._vendor.limits.dtypes
        allowed = self._table.ops.dtypes.get(name, ())
        narrower = [limits[dtype].becomes for dtype in use.signature.dtypes if dtype in limits]
        dtypes = allowed or tuple(dict.fromkeys(filter(None, narrower)))
        if dtypes:
            yield Advice(Remedy.OTHER_DTYPE, OTHER_DTYPE.format(dtypes=", ".join(dtypes)))

    def _has(self, name: str, version: str) -> bool:
        """Whether an adapter version serves an operator, by a kernel or made of others."""
        if (name, version) not in self._known:
            table = replace(self._table, version=version)
            fact = self._facts.get(name)
            if fact is None:
                has = table.lists(name)
            else:
                basis = standing(fact, self._siblings.get(name, ()), table).basis
                has = basis not in (SupportBasis.ABSENT, SupportBasis.UNKNOWN)
            self._known[name, version] = has
        return self._known[name, version]


def _code_on_cpu(signature: Signature) -> str:
    """The call with its tensors brought to the CPU and its result brought back; "" where it writes to its arguments."""
    base = signature.operator.partition("::")[2].partition(".")[0]
    tensors = [argument for argument in signature.arguments if isinstance(argument.value, TensorSpec)]
    if base.endswith("_") or len(signature.results) != 1 or not signature.outputs or not tensors:
        return ""
    arguments = [
        _argument(place, argument.name, argument.value) for place, argument in enumerate(signature.arguments)
    ]
    if None in arguments:
        return ""
    device = _variable(tensors[0].name)
    return f"result = torch.ops.aten.{base}({', '.join(filter(None, arguments))}).to({device}.device)"


def _argument(place: int, name: str, value: Value) -> str | None:
    if isinstance(value, TensorSpec):
        return f"{_variable(name)}.cpu()"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value) if place == 0 else f"{name}={value!r}"
    if isinstance(value, tuple) and all(isinstance(item, (bool, int, float)) for item in value):
        return f"{name}={list(value)!r}"
    return None


def _variable(name: str) -> str:
    return "x" if name == "self" else name
