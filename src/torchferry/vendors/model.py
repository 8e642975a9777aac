"""What is known about one accelerator, as a frozen record. Rules ask it; they never ask for a vendor's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from torchferry.text import Text
from torchferry.vendors import keys


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
class ApisFile:
    """apis.toml: what became of CUDA's names."""

    complete: bool = keys.flag("false")
    apis: Mapping[str, str] = keys.text_table(
        '[apis] with "torch.cuda.NAME" = "same", "unsupported", "unknown" or the new full name', keys.DOTTED
    )
    basis: Mapping[str, tuple[str, ...]] = keys.list_table('[basis] with how = ["torch.cuda.NAME"]')
    notes: Mapping[str, str] = keys.text_table('[notes] with "torch.cuda.NAME" = "limit in words"')
    sources: tuple[keys.Source, ...] = keys.sources()


@dataclass(frozen=True)
class Replacement:
    """What to use instead of a CUDA-only library or function."""

    cuda: str = keys.text('"apex.optimizers.FusedAdam"', keys.DOTTED, required=True)
    use: str = keys.text('"what to use instead"', required=True)
    automatic: str = keys.text('"torch.optim.AdamW"', keys.OPTIONAL_DOTTED)
    same_arguments: bool = keys.flag("true")


@dataclass(frozen=True)
class ReplacementsFile:
    """replacements.toml: what stands in for libraries and functions that only CUDA has."""

    replacements: tuple[Replacement, ...] = keys.rows(
        Replacement, '[[replacements]] with cuda = "...", use = "..."'
    )
    sources: tuple[keys.Source, ...] = keys.sources()


class MissingOperator(str, Enum):
    """What the adapter does with an operator that has no kernel on the device."""

    FALLS_BACK = "falls_back"  # runs it on the CPU, with a warning
    RAISES = "raises"
    UNKNOWN = ""


class Narrowing(str, Enum):
    """What the adapter does with a dtype that the device has no full support for."""

    # a cast on the device gives the narrower one; a tensor made or moved with it keeps it
    CAST_AS = "cast_as"
    COMPUTED_AS = "computed_as"  # kept as it is, computed in the narrower one
    REFUSED = "refused"


@dataclass(frozen=True)
class DtypeLimit:
    """The limit of one dtype."""

    narrowing: Narrowing = keys.choice(Narrowing, '"computed_as"', required=True)
    becomes: str = keys.text('"float32"', r"\w*")
    message: str = keys.wording("dtype", "becomes")
    when: tuple[str, ...] = keys.settings()
    unlisted: tuple[str, ...] = keys.texts('["mm"]', r"\w+")

    def applies(self, environment: Mapping[str, str]) -> bool:
        """Whether the limit is in force with these environment variables."""
        return not self.when or any_holds(self.when, environment)


@dataclass(frozen=True)
class Sparse:
    """What the adapter does with operators on sparse (COO) tensors."""

    missing_operator: MissingOperator = keys.choice(
        MissingOperator, '"raises"', MissingOperator.UNKNOWN, required=True
    )
    kernels: tuple[str, ...] = keys.texts('["add.out"]', r"[\w.]+")
    missing_message: str = keys.wording("operator")
    fallback_message: str = keys.wording("operator")


@dataclass(frozen=True)
class Saturation:
    """Cards that have no infinities, or can be told to have none: an overflow gives the largest number."""

    dtypes: tuple[str, ...] = keys.texts('["float16"]', r"\w+", default=(), required=True)
    cards: tuple[str, ...] = keys.texts('["Acme 10"]')
    when: tuple[str, ...] = keys.settings()
    refused_when: tuple[str, ...] = keys.settings()
    refused_message: str = keys.wording()

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

    operator_version: str = keys.text('"2.4"', r"(\d+(\.\d+)*)?")
    missing_operator: MissingOperator = keys.choice(MissingOperator, '"raises"', MissingOperator.UNKNOWN)
    raise_when: tuple[str, ...] = keys.settings()
    fall_back_when: tuple[str, ...] = keys.settings()
    backend_name: str = keys.text('"ACME"', r"\w*")
    missing_message: str = keys.wording("operator", "backend")
    raise_when_message: str = keys.wording("operator", "backend")
    fallback_message: str = keys.wording("operator")
    out_of_memory_message: str = keys.wording(*("device", "wanted", "total", "allocated", "reserved", "free"))
    data_parallel_message: str = keys.wording()
    refused_reductions: tuple[str, ...] = keys.texts('["float64"]', r"\w+")
    refused_reduction_message: str = keys.wording("dtype")
    shallow_copy: bool | None = keys.flag("true", None)
    block_padding: int = keys.number("32")
    device_name: str = keys.text('"Acme 100"')
    device_memory: str = keys.text('"64GiB"', r"(\d+[KMGT]iB)?")
    device_count: int = keys.number("8")
    dtypes: Mapping[str, DtypeLimit] = keys.tables(
        DtypeLimit, '[limits.dtypes.float64] with narrowing = "computed_as", becomes = "float32"'
    )
    sparse: Sparse = keys.table(Sparse, '[limits.sparse] with missing_operator = "raises"')
    saturation: Saturation = keys.table(Saturation, '[limits.saturation] with dtypes = ["float16"]')

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


@dataclass(frozen=True, kw_only=True)
class Card:
    """Another card of the vendor than that of the typical server; what is left out is as there."""

    name: str = keys.text('"Acme 50"', r".+", required=True)
    memory: str = keys.text('"32GiB"', r"(\d+[KMGT]iB)?")
    count: int = keys.number("8")
    without: tuple[str, ...] = keys.texts('["bfloat16"]', r"\w+")
    without_message: str = keys.wording("dtype")
    amp_dtypes: tuple[str, ...] = keys.texts('["float16"]', r"\w+")
    ranks: tuple[str, ...] = keys.texts('["1", "2", "4"]', r"[1-9]\d*")
    source: str = keys.text('"where this is known from"', r".+", required=True)


@dataclass(frozen=True)
class Emulation:
    """How the vendor's own plugin can run without the vendor's hardware; all of it is "" if it can't."""

    toolkit: str = keys.text('"cann"', r"[a-z]\w*", "", required=True)
    card: str = keys.text('"Acme100"', r"\w*")


def any_holds(settings: tuple[str, ...], environment: Mapping[str, str]) -> bool:
    """Whether the environment has one of these VARIABLE=value."""
    return any(
        environment.get(variable) == value
        for variable, _, value in (setting.partition("=") for setting in settings)
    )


@dataclass(frozen=True, kw_only=True)
class Vendor:
    """One accelerator as TorchFerry knows it. "" and empty collections mean: not known."""

    name: str = keys.text('"acme"', r"(?!portable$)[a-z][a-z0-9_-]*", required=True)
    company: str = keys.text('"Acme Ltd"', r".+", required=True)
    company_zh: str = keys.text('"the same in Chinese"')
    device_type: str = keys.text('"acme"', r"[a-z]\w*", required=True)
    aliases: tuple[str, ...] = keys.texts('["acme-ai"]', r"[^\sA-Z,@]+")
    plugin: str = keys.text(
        '"torch_acme"', keys.OPTIONAL_DOTTED, hint=' ("" when PyTorch has the device in tree)', required=True
    )
    torch_module: str = keys.text('"torch.acme"', keys.DOTTED, required=True)
    dist_backend: str = keys.text('"accl"', r"\w*", required=True)
    visible_devices_env: str = keys.text('"ACME_VISIBLE_DEVICES"', rf"({keys.NAME})?")
    smi: str = keys.text('"acme-smi"')
    tensor_method: str = keys.text('"acme"', keys.NAME, hint=", as in tensor.acme()", required=True)
    is_attribute: str = keys.text('"is_acme"', keys.NAME, required=True)
    amp_module: str = keys.text('"torch.acme.amp"', keys.OPTIONAL_DOTTED)
    autocast_device_type: str = keys.text('"acme"', r"\w*")
    amp_dtypes: tuple[str, ...] = keys.texts('["float16", "bfloat16"]')
    fused_optimizer_module: str = keys.text('"torch_acme.optim"', keys.OPTIONAL_DOTTED)
    fused_optimizers: tuple[str, ...] = keys.texts('["FusedAdam"]')
    profiler_module: str = keys.text('"torch.profiler"', keys.OPTIONAL_DOTTED)
    profiler_activity: str = keys.text('"ACME"', rf"({keys.NAME})?")
    marker_module: str = keys.text('"torch.acme.marks"', keys.OPTIONAL_DOTTED)
    memory_format: str = keys.text()
    channels_last: bool = keys.flag("false")
    refused_memory_formats: tuple[str, ...] = keys.texts('["channels_last"]', keys.NAME)
    data_parallel: Support = keys.choice(Support, '"unknown"', Support.UNKNOWN)
    jit_script: str = keys.text()
    graphs: str = keys.text()
    apex: str = keys.text()
    triton: str = keys.text()
    extension: str = keys.text()
    oom_exception: str = keys.text('"torch.acme.OutOfMemoryError"', keys.OPTIONAL_DOTTED)
    jit_script_by_migration: bool = keys.flag("false")
    migrations: tuple[str, ...] = keys.texts('["torch_acme.utils.cuda_migrate"]')
    apex_initialize: str = keys.text('"combine_grad=True"', rf"({keys.NAME}=.+)?")
    dtypes: Mapping[str, str] = keys.text_table('[dtypes] with float64 = "limit in words"')
    env: Mapping[str, str] = keys.text_table('[env] with VARIABLE = "meaning"')
    env_map: Mapping[str, str] = keys.text_table(
        '[env_map] with CUDA_VARIABLE = "VARIABLE" or ""', rf"({keys.NAME})?"
    )
    launch_env: Mapping[str, str] = keys.text_table('[launch_env] with VARIABLE = "value"', r"[\w.:/,-]+")
    emulation: Emulation = keys.table(Emulation, '[emulation] with toolkit = "cann"')
    limits: Limits = keys.table(Limits, '[limits] with missing_operator = "raises" and others')
    cards: tuple[Card, ...] = keys.rows(
        Card, '[[cards]] with name = "Acme 50", memory = "32GiB", source = "..."'
    )
    sources: tuple[keys.Source, ...] = keys.sources()  # of all three files
    # From apis.toml and replacements.toml; what else is no key of vendor.toml
    apis: Mapping[str, Api] = field(default_factory=dict)  # torch.cuda.* and friends
    apis_complete: bool = False  # False: a name that is not listed is unknown, not unsupported
    api_notes: Mapping[str, str] = field(default_factory=dict)  # limits of an API in words, by CUDA name
    replacements: tuple[Replacement, ...] = ()
    card: Card | None = None  # the one of `cards` that was chosen
    folder: str = ""  # where the data was read from

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


def natural_name(name: str, torch_module: str) -> str:
    """The name that an API has if the vendor didn't rename it: torch.cuda.X is under the vendor's module."""
    if name == "torch.cuda" or name.startswith("torch.cuda."):
        return torch_module + name[len("torch.cuda") :]
    return name


# Environment variables of CUDA and NCCL whose values mean the same to a vendor's variable.
# Paths, lists of architectures and names of algorithms do not: they are left out here.
SAME_VALUES = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "CUDA_LAUNCH_BLOCKING",
        "PYTORCH_CUDA_ALLOC_CONF",
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
    }
    | {f"{prefix}{name}" for prefix in ("", "TORCH_") for name in ("NCCL_BLOCKING_WAIT", "NCCL_DESYNC_DEBUG")}
    | {"NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING"}
)
# In scripts also these: logs, watchdogs and recorders, which take the same levels, sizes and times.
SAME_VALUES_IN_SCRIPTS = SAME_VALUES | {
    "NCCL_DEBUG",
    "PYTORCH_NVML_BASED_CUDA_CHECK",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_NCCL_AVOID_RECORD_STREAMS",
    "TORCH_NCCL_DUMP_ON_TIMEOUT",
    "TORCH_NCCL_ENABLE_MONITORING",
    "TORCH_NCCL_ENABLE_TIMING",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
    "TORCH_NCCL_TRACE_BUFFER_SIZE",
}
