"""What is known about one accelerator, as a frozen record. Rules ask it; they never ask for a vendor's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from torchferry.text import Text


class Support(str, Enum):
    """Whether the vendor has something."""

    SAME = "same"  # under the vendor's own module, with the same name
    RENAMED = "renamed"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Api:
    """What became of one CUDA API name; `name` is the full name to write instead, "" if there is none."""

    support: Support
    name: str
    basis: str = ""  # how it is known: a vendor list, the module's own names, usage


@dataclass(frozen=True)
class Replacement:
    """What to use instead of a CUDA-only library or function."""

    cuda: str  # dotted name that it stands for: "apex.optimizers.FusedAdam", "flash_attn", ...
    use: str  # what this vendor (or plain torch) offers; "" when nothing is known
    automatic: str = ""  # full dotted name that can be put in its place without further thought
    same_arguments: bool = False  # it has the arguments of the original, in the same order


@dataclass(frozen=True)
class Source:
    """Where a fact comes from."""

    name: str  # repository or package
    version: str  # commit, release or date
    path: str


class MissingOperator(str, Enum):
    """What the adapter does with an operator that has no kernel on the device."""

    FALLS_BACK = "falls_back"  # runs it on the CPU, with a warning
    RAISES = "raises"
    UNKNOWN = ""


class Narrowing(str, Enum):
    """What the adapter does with a dtype that the device has no full support for."""

    CAST_AS = (
        "cast_as"  # a cast on the device gives the narrower one; a tensor made or moved with it keeps it
    )
    COMPUTED_AS = "computed_as"  # kept as it is, computed in the narrower one
    REFUSED = "refused"


@dataclass(frozen=True)
class DtypeLimit:
    """The limit of one dtype."""

    narrowing: Narrowing
    becomes: str = ""  # the narrower dtype; "" when it is refused
    message: str = ""  # the adapter's warning or error, with {dtype} and {becomes}
    when: tuple[str, ...] = ()  # only if one of these VARIABLE=value holds; empty: always
    unlisted: tuple[str, ...] = ()  # operators whose dtypes the vendor lists, without this one

    def applies(self, environment: Mapping[str, str]) -> bool:
        """Whether the limit is in force with these environment variables."""
        return not self.when or any_holds(self.when, environment)


@dataclass(frozen=True)
class Sparse:
    """What the adapter does with operators on sparse (COO) tensors."""

    missing_operator: MissingOperator = MissingOperator.UNKNOWN
    kernels: tuple[str, ...] = ()  # operators that it has for them: add.out
    missing_message: str = ""  # {operator}
    fallback_message: str = ""  # {operator}


@dataclass(frozen=True)
class Saturation:
    """Cards that have no infinities, or can be told to have none: an overflow gives the largest number."""

    dtypes: tuple[str, ...] = ()
    cards: tuple[str, ...] = ()  # how the names of cards begin that always do
    when: tuple[str, ...] = ()  # VARIABLE=value: one that holds makes the other cards do so
    refused_when: tuple[str, ...] = ()  # VARIABLE=value: refused by the other cards unless `when` holds
    refused_message: str = ""

    def applies(self, card: str, environment: Mapping[str, str]) -> bool:
        """Whether a card computes so with these environment variables."""
        return bool(self.dtypes) and (card.startswith(self.cards) or any_holds(self.when, environment))

    def refusal(self, card: str, environment: Mapping[str, str]) -> str:
        """What the adapter says instead of starting; "" when it starts."""
        refused = not self.applies(card, environment) and any_holds(self.refused_when, environment)
        return self.refused_message if refused else ""


@dataclass(frozen=True)
class Limits:
    """What the device can't do and how its adapter says so: the facts that a simulated device enforces.

    Sizes in messages come ready for reading ("1.50 GiB"), operators as aten::add.Tensor.
    """

    operator_version: str = ""  # column of ops.txt that holds; "" any
    missing_operator: MissingOperator = MissingOperator.UNKNOWN
    raise_when: tuple[str, ...] = ()  # VARIABLE=value: one that holds turns falling back into an error
    fall_back_when: tuple[str, ...] = ()  # VARIABLE=value: one that holds turns the error into falling back
    backend_name: str = ""  # how messages call the device's dispatch key
    missing_message: str = ""  # {operator} {backend}
    raise_when_message: str = ""  # {operator} {backend}; the error that raise_when brings, "" the same
    fallback_message: str = ""  # {operator}
    out_of_memory_message: str = ""  # {device} {wanted} {total} {allocated} {reserved} {free}
    data_parallel_message: str = ""
    refused_reductions: tuple[str, ...] = ()  # dtypes that all_reduce, reduce and reduce_scatter refuse
    refused_reduction_message: str = ""  # {dtype}, as ATen calls it: Double
    shallow_copy: bool | None = None  # whether module.to(device) keeps the Parameter objects; None unknown
    device_name: str = ""  # the facts below are those of one typical server
    device_memory: str = ""  # "64GiB"
    device_count: int = 0  # 0 unknown
    dtypes: Mapping[str, DtypeLimit] = field(default_factory=dict)
    sparse: Sparse = Sparse()
    saturation: Saturation = Saturation()

    def missing_operator_in(self, environment: Mapping[str, str]) -> MissingOperator:
        """What the adapter does with a missing operator when these environment variables are set."""
        if self.missing_operator is MissingOperator.FALLS_BACK and any_holds(self.raise_when, environment):
            return MissingOperator.RAISES
        if self.missing_operator is MissingOperator.RAISES and any_holds(self.fall_back_when, environment):
            return MissingOperator.FALLS_BACK
        return self.missing_operator

    def missing_message_in(self, environment: Mapping[str, str]) -> str:
        """The wording of the error for a missing operator when these environment variables are set."""
        switched = self.raise_when_message and any_holds(self.raise_when, environment)
        return self.raise_when_message if switched else self.missing_message


@dataclass(frozen=True)
class Card:
    """Another card of the vendor than that of the typical server; what is left out is as there."""

    name: str
    source: str  # where this is known from
    memory: str = ""  # "32GiB", of one device
    count: int = 0  # devices of one server
    without: tuple[str, ...] = ()  # dtypes that the adapter says it lacks
    without_message: str = ""  # the error where one of these is used; "": it is not refused
    amp_dtypes: tuple[str, ...] = ()  # those of autocast
    ranks: tuple[str, ...] = ()  # how many processes of one server can be a group


@dataclass(frozen=True)
class Emulation:
    """How the vendor's own plugin can run without the vendor's hardware; all of it is "" if it can't."""

    toolkit: str = ""  # which of the toolkits that TorchFerry can stand in for the plugin needs
    card: str = ""  # what the device says that it is; "": as the typical server


def any_holds(settings: tuple[str, ...], environment: Mapping[str, str]) -> bool:
    """Whether the environment has one of these VARIABLE=value."""
    return any(
        environment.get(variable) == value
        for variable, _, value in (setting.partition("=") for setting in settings)
    )


@dataclass(frozen=True)
class Vendor:
    """One accelerator as TorchFerry knows it. "" and empty collections mean: not known."""

    name: str
    company: str
    device_type: str
    plugin: str  # Python module to import; "" when PyTorch has the device in tree
    torch_module: str  # torch.npu
    dist_backend: str
    visible_devices_env: str
    smi: str
    tensor_method: str  # npu, as in tensor.npu()
    is_attribute: str  # is_npu
    amp_module: str
    autocast_device_type: str
    amp_dtypes: tuple[str, ...]
    fused_optimizer_module: str
    fused_optimizers: tuple[str, ...]
    profiler_module: str
    profiler_activity: str  # NPU, as in ProfilerActivity.NPU; "" unknown
    marker_module: str
    memory_format: str
    channels_last: bool
    dtypes: Mapping[str, str]  # dtype -> limit in words
    data_parallel: Support
    jit_script: str  # what the adapter does with torch.jit.script; "" nothing known
    migrations: tuple[str, ...]  # modules of the vendor's own that make CUDA's names mean its device
    graphs: str
    apex: str
    triton: str
    extension: str  # how custom kernels are built for it
    missing_op: str
    oom_exception: str
    env: Mapping[str, str]  # the vendor's variables -> meaning
    env_map: Mapping[str, str]  # CUDA/NCCL variable -> the vendor's, "" when there is none
    apis: Mapping[str, Api]  # torch.cuda.* and friends
    apis_complete: bool  # False: a name that is not listed is unknown, not unsupported
    replacements: tuple[Replacement, ...]
    sources: tuple[Source, ...]
    folder: str  # where the data was read from
    api_notes: Mapping[str, str] = field(default_factory=dict)  # limits of an API in words, by CUDA name
    limits: Limits = field(default_factory=Limits)
    # what its guide sets before several processes are started -> value
    launch_env: Mapping[str, str] = field(default_factory=dict)
    emulation: Emulation = Emulation()
    cards: tuple[Card, ...] = ()
    card: Card | None = None  # the one of these that was chosen
    company_zh: str = ""
    apex_initialize: str = ""  # an argument of amp.initialize that only its apex has, for speed
    jit_script_by_migration: bool = False  # `jit_script` holds only once one of `migrations` is imported

    @property
    def company_name(self) -> Text:
        """The company as readers of each language call it."""
        return Text(self.company, self.company_zh or self.company)

    @property
    def has_apex(self) -> bool:
        """Whether the vendor has an apex of its own."""
        return bool(self.apex) and not self.apex.startswith("none")

    @property
    def lacks(self) -> tuple[str, ...]:
        """The dtypes that the chosen card lacks."""
        return self.card.without if self.card else ()

    def api(self, name: str) -> Api:
        """What to write for a CUDA API; a name that no table knows is unknown."""
        return self.apis.get(name, Api(Support.UNKNOWN, ""))
