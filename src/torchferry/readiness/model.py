"""What a program called: operators, with what, from where, how often; and what a device does with it. Imports no torch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from torchferry.text import Text
from torchferry.units import ITEM_SIZES

TRACE = "trace"  # the origin of a capture that was read from a profiler's file


class Phase(str, Enum):
    """What the program was doing."""

    SETUP = "setup"  # before the first forward pass: weights are drawn and moved
    DATA = "data"  # a DataLoader was asked for the next batch
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"  # and what is done to gradients before it: clipping, scaling

    @property
    def is_on_host(self) -> bool:
        """Whether a training program does this on the CPU, whatever its device."""
        return self in (Phase.SETUP, Phase.DATA)


@dataclass(frozen=True)
class TensorSpec:
    """A tensor without its contents."""

    dtype: str  # float32
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None = None  # None: the layout has none, or it is not known
    layout: str = "strided"
    device: str = "cpu"  # its type, without an index

    @property
    def elements(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """What a copy of it takes."""
        return self.elements * ITEM_SIZES.get(self.dtype, 4)


@dataclass(frozen=True)
class Special:
    """A value that is no number, text or tensor: a dtype, device, layout, memory format, generator ..."""

    kind: str  # dtype, device, layout, memory_format, complex, generator, or the name of its type
    text: str  # float32, cuda:0, channels_last


Value = TensorSpec | Special | None | bool | int | float | str | tuple["Value", ...]


@dataclass(frozen=True)
class Argument:
    """One argument that was given."""

    name: str
    value: Value


@dataclass(frozen=True)
class Signature:
    """An operator and what it was called with."""

    operator: str  # aten::add.Tensor; the default overload has no suffix
    # in the order of the schema; defaults that were not given are absent
    arguments: tuple[Argument, ...] = ()
    results: tuple[Value, ...] = ()

    @property
    def inputs(self) -> list[TensorSpec]:
        """The tensors among the arguments."""
        return [spec for argument in self.arguments for spec in tensors_in(argument.value)]

    @property
    def outputs(self) -> list[TensorSpec]:
        """The tensors among the results."""
        return [spec for result in self.results for spec in tensors_in(result)]

    @property
    def dtypes(self) -> list[str]:
        """Each dtype of its tensors once, arguments first."""
        return list(dict.fromkeys(spec.dtype for spec in [*self.inputs, *self.outputs]))


@dataclass(frozen=True)
class OperatorSite:
    """Where in the program an operator is called."""

    phase: Phase
    module: str = ""  # layer1.0.conv1; "" outside of every module
    place: str = ""  # train.py:34, the line of the user's code; in the backward pass that of the forward call
    node: str = ""  # in the backward pass: autograd's name for the step, ConvolutionBackward0
    inside: str = ""  # the composite operator that made the call; "" if the program or autograd did


@dataclass(frozen=True)
class Use:
    """Calls of one operator with one signature from one site, folded."""

    signature: Signature
    site: OperatorSite
    calls: int
    seconds: float  # without the operators that it called in turn
    expanded: bool = False  # a composite operator: what it called is in the list, with this one as `inside`
    varied: bool = False  # further calls from this site with other shapes are counted here

    @property
    def operator(self) -> str:
        """The operator's name: aten::add.Tensor."""
        return self.signature.operator


@dataclass(frozen=True)
class ModuleInfo:
    """One module of the model that ran."""

    path: str  # layer1.0; "" is the model itself
    type: str  # Bottleneck


@dataclass(frozen=True)
class Capture:
    """Everything that one run called."""

    program: str  # the command line, the model's factory, or the trace's file
    origin: str  # program, model or trace
    device: str  # the type of the device that computed: cpu, cuda, npu, meta
    torch: str = ""  # version; "" if it is not known
    steps: int = 0  # of the optimizer
    seconds: float = 0.0  # from the first forward pass to the end, with the capture's own cost
    processes: int = 1
    uses: tuple[Use, ...] = ()
    modules: tuple[ModuleInfo, ...] = ()
    notes: tuple[str, ...] = ()  # keys of NOTES: what could not be seen

    def judged(self) -> list[Use]:
        """The uses that a device must serve: not those of set-up and data loading, and no composite ones."""
        return [use for use in self.uses if self.runs_on_device(use) and not use.expanded]

    def runs_on_device(self, use: Use) -> bool:
        """Whether the call would be the device's. A run on the CPU, and a trace, tell by the phase: a trace does not
        say where tensors are. Others tell by the tensors."""
        if self.device in ("cpu", "meta") or self.origin == TRACE:
            return not use.site.phase.is_on_host
        specs = [*use.signature.inputs, *use.signature.outputs]
        return any(spec.device == self.device for spec in specs)


def tensors_in(value: Value) -> Iterator[TensorSpec]:
    """The tensors of a value, those of lists included."""
    if isinstance(value, TensorSpec):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from tensors_in(item)


class OperatorSupport(str, Enum):
    """What the vendor's adapter does with an operator, as far as its table says. Best first."""

    KERNEL = "kernel"  # the device has a kernel under this name, or under an equivalent one
    STRUCTURED = "structured"  # the kernel of another overload computes it
    COMPOSITE = "composite"  # PyTorch makes it of other operators, each judged for itself
    LIMITED = "limited"  # there is a kernel, but not for this dtype, or with a limit
    UNKNOWN = "unknown"  # the table does not speak of it
    FALLBACK = "fallback"  # no kernel: the adapter computes it on the CPU
    MISSING = "missing"  # no kernel: the adapter raises

    @property
    def is_ready(self) -> bool:
        """Whether the device computes it."""
        return self in (OperatorSupport.KERNEL, OperatorSupport.STRUCTURED, OperatorSupport.COMPOSITE)

    @property
    def is_problem(self) -> bool:
        """Whether a user has to do something, or to accept a cost."""
        return self in (OperatorSupport.LIMITED, OperatorSupport.FALLBACK, OperatorSupport.MISSING)


class Remedy(str, Enum):
    """The kind of advice."""

    COMPOSITION = "composition"  # other operators that compute the same; a test has run both
    VENDOR_OPERATOR = "vendor_operator"  # the vendor has an operator of its own for it
    OTHER_VERSION = "other_version"  # another version of the adapter has a kernel
    OTHER_DTYPE = "other_dtype"
    KEEP_ON_CPU = "keep_on_cpu"


@dataclass(frozen=True)
class Advice:
    """What a user can do about an operator."""

    remedy: Remedy
    text: Text
    code: str = ""  # the replacement, as Python; "" where there is none to show
    source: str = ""  # where it is documented


@dataclass(frozen=True)
class UseJudgement:
    """One use of an operator, on one vendor's device."""

    use: Use
    support: OperatorSupport
    reason: Text  # one sentence
    moved_bytes: int = 0  # there and back, in all calls together, if it is computed on the CPU
    advice: tuple[Advice, ...] = ()


@dataclass(frozen=True)
class Readiness:
    """A program on one vendor's device."""

    capture: Capture
    vendor: str
    device_type: str
    version: str  # of the adapter, whose table was asked
    complete: bool  # whether the table lists all operators; if not, those that it does not list are unknown
    judgements: tuple[UseJudgement, ...]

    @property
    def seconds(self) -> float:
        """The time of all operators that were judged."""
        return sum(judgement.use.seconds for judgement in self.judgements)

    @property
    def ready_share(self) -> float:
        """The share of operator time whose operators the device computes; of the calls where no time is known."""
        weigh_time = self.seconds > 0
        total = ready = 0.0
        for judgement in self.judgements:
            weight = judgement.use.seconds if weigh_time else judgement.use.calls
            total += weight
            ready += weight if judgement.support.is_ready else 0.0
        return ready / total if total else 1.0

    @property
    def is_ready(self) -> bool:
        """Whether the device computes all operators."""
        return all(judgement.support.is_ready for judgement in self.judgements)

    @property
    def moved_bytes(self) -> int:
        """What operators that the device lacks move to the CPU and back."""
        return sum(judgement.moved_bytes for judgement in self.judgements)

    @property
    def problems(self) -> list[UseJudgement]:
        """What a user has to look at."""
        return [judgement for judgement in self.judgements if judgement.support.is_problem]

    def operators(self, *supports: OperatorSupport) -> list[str]:
        """Each operator with one of these judgements once, that with the most time first."""
        seconds: dict[str, float] = {}
        for judgement in self.judgements:
            if judgement.support in supports:
                name = judgement.use.operator
                seconds[name] = seconds.get(name, 0.0) + judgement.use.seconds
        return sorted(seconds, key=lambda name: (-seconds[name], name))


# What a capture could not see, in words; a capture holds the keys.

NOTES: Mapping[str, Text] = {
    "compiled": Text(
        "code compiled by torch.compile is opaque: its operators are missing here; run once without it",
        "torch.compile 编译过的代码内部不可见：其中的算子未列出；请关闭编译后再运行一次",
    ),
    "scripted": Text(
        "modules and source lines inside TorchScript code are unknown",
        "TorchScript 代码内部的模块与源代码行未知",
    ),
    "no_shapes": Text(
        "shapes and dtypes are unknown, so limits on dtypes and the cost of fallbacks can't be judged; "
        "record with record_shapes=True",
        "形状与数据类型未知：无法判断数据类型限制与回退代价；请用 record_shapes=True 采集",
    ),
    "no_overloads": Text(
        "a trace does not name overloads; they were inferred from the arguments where these are unambiguous",
        "trace 不区分算子重载；仅在参数足以确定时选定重载",
    ),
    "truncated": Text(
        "the file is truncated or damaged: readable parts are counted, the rest is missing",
        "文件不完整或已损坏：仅统计可读取的部分",
    ),
    "varied": Text(
        "some calls have very many shapes: the first ones are listed, the others are counted with the "
        "last of them",
        "部分调用的形状非常多：只列出最先出现的形状，其余计入其中最后一个",
    ),
    "no_step": Text(
        "no optimizer made a step before the end: if the program trains, the operators of that step are "
        "missing",
        "结束之前没有优化器执行更新：如果程序进行训练，则缺少更新步骤的算子",
    ),
    "ended_ill": Text(
        "the program failed early (see its output): only the operators called before that are listed",
        "程序中途出错，见其输出：此处只有出错之前调用的算子",
    ),
    "higher_order": Text(
        "operators that take functions (cond, while_loop, flex_attention) are not listed themselves",
        "以函数为参数的算子（cond、while_loop、flex_attention）本身未列出",
    ),
    "fake": Text(
        "only shapes were computed: times are unknown, so operators are weighted by their calls",
        "仅推导形状而未实际计算：没有耗时，算子按调用次数加权",
    ),
    "cpu_autocast": Text(
        "autocast chose dtypes as on a CPU: to choose as on an accelerator it needs the compiled part of "
        "the simulated device, which is not built here",
        "autocast 按 CPU 的规则选择数据类型：要按加速卡的规则选择，需要模拟设备的编译部分，而此处尚未构建",
    ),
    "function_lines": Text(
        "the profiler records functions, not lines: places are the first lines of the calling functions",
        "profiler 只记录函数而非行：给出的位置是调用处所在函数的起始行",
    ),
    "module_types": Text(
        "the profiler identifies modules by numbered types, not by their names in the model",
        "profiler 以编号的类型标识模块，而非模型中的名称",
    ),
    "no_places": Text(
        "source lines are unknown; record with with_stack=True",
        "源代码行未知：请用 with_stack=True 采集",
    ),
    "flat": Text(
        "a table does not tell which operator called which: operators called inside others are counted "
        "as well",
        "表格不含调用关系：算子内部调用的算子也被计入",
    ),
    "short_names": Text(
        "long names are truncated in a table; rows that match no operator, or several, are left out",
        "表格中的长名称被截断；无法对应到唯一算子的行已略去",
    ),
}
