"""How ready a vendor's device is for a program: a judgement of every operator, and what follows from all of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from torchferry.ops.model import Capture, Use
from torchferry.text import Text


class Support(str, Enum):
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
        return self in (Support.KERNEL, Support.STRUCTURED, Support.COMPOSITE)

    @property
    def is_problem(self) -> bool:
        """Whether a user has to do something, or to accept a cost."""
        return self in (Support.LIMITED, Support.FALLBACK, Support.MISSING)


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
class Judgement:
    """One use of an operator, on one vendor's device."""

    use: Use
    support: Support
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
    judgements: tuple[Judgement, ...]

    @property
    def seconds(self) -> float:
        """Of all operators that were judged."""
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
    def problems(self) -> list[Judgement]:
        """What a user has to look at."""
        return [judgement for judgement in self.judgements if judgement.support.is_problem]

    def operators(self, *supports: Support) -> list[str]:
        """Each operator with one of these judgements once, that with the most time first."""
        seconds: dict[str, float] = {}
        for judgement in self.judgements:
            if judgement.support in supports:
                name = judgement.use.operator
                seconds[name] = seconds.get(name, 0.0) + judgement.use.seconds
        return sorted(seconds, key=lambda name: (-seconds[name], name))
