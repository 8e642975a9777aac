"""The records of a proof: what a process leaves about each step, and what a comparison makes of two runs.

Three levels. A *recording* is a file that one process of one run appends to (`StepRecord`, one line each). A *run* is
one execution of the program (`Run`); it keeps only what reports show of each step (`StepSummary`). A *proof* is the
reference run, one run per vendor and the verdict on each (`Proof`). Imports no torch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from torchferry.text import Text


@dataclass(frozen=True)
class TensorFacts:
    """What is kept of a tensor instead of the tensor."""

    shape: tuple[int, ...]
    dtype: str  # "float32", as torch writes it without "torch."
    checksum: str  # of shape, dtype and every byte: equal checksums are equal tensors
    norm: float  # l2, summed in float64; of a complex tensor, that of its parts. May be nan or inf
    projections: tuple[float, ...]  # on fixed random signs

    def projected_distance(self, other: TensorFacts) -> float:
        """The l2 distance of two tensors, estimated: the rms of the differences of their projections."""
        squares = [(a - b) ** 2 for a, b in zip(self.projections, other.projections, strict=True)]
        return math.sqrt(sum(squares) / len(squares)) if all(map(math.isfinite, squares)) else math.inf


@dataclass(frozen=True)
class NamedFacts:
    """A parameter, its gradient, or a buffer."""

    name: str  # "layer1.0.conv1.weight" as the outermost module names it, else "optimizer0.group0.3"
    facts: TensorFacts | None  # None: a parameter without a gradient, or a lazy one that has no shape yet


@dataclass(frozen=True)
class LossRecord:
    """The loss of one call of backward."""

    value: float  # the loss, as the program knows it: without a GradScaler's factor; of several elements, their sum
    facts: TensorFacts  # of the tensor that backward was called on, without that factor as well
    place: str  # "train.py:57": the nearest line that is not PyTorch's
    scale: float = 1.0  # the GradScaler's factor, 1 where there was none


@dataclass(frozen=True)
class StepRecord:
    """One step of one optimizer, as the process saw it."""

    ordinal: int  # 1, 2, ...: over all optimizers of the process
    optimizer: int  # 0, 1, ...: in the order of their first steps
    optimizer_type: str  # "SGD"
    losses: tuple[LossRecord, ...]  # backward calls since the step before, of any optimizer
    skipped: int  # steps that GradScaler has left out since the step before
    gradients: tuple[NamedFacts, ...]  # as the step found them, in the order of the parameter groups
    parameters: tuple[NamedFacts, ...]  # after the step, in the same order
    buffers: tuple[NamedFacts, ...]  # after the step: running statistics and the like
    devices: tuple[str, ...] = ()  # types of those that hold the losses and the parameters: "cpu", "npu"
    step: int = 0  # of the training, as all commands count them: observe/steps.py


MAIN = "main"


@dataclass(frozen=True)
class ProcessIdentity:
    """Which of a run's processes a recording is of."""

    rank: int | None  # in the process group or by torchrun; None where there is none
    role: str  # MAIN, or what multiprocessing calls it: "SpawnProcess-2"
    pid: int
    started: int  # nanoseconds, to order processes of the same rank and role
    restart: int  # how often torchrun had started the program anew
    torch: str  # version


@dataclass(frozen=True)
class StepSummary:
    """What reports show of a step."""

    ordinal: int
    optimizer: int
    losses: tuple[float, ...]
    gradient_norm: float  # l2 over all gradients of the step
    checksum: str  # of all parameters after the step
    skipped: int
    step: int = 0  # of the training


@dataclass(frozen=True)
class ProcessSummary:
    """What reports show of a process."""

    identity: ProcessIdentity
    optimizers: tuple[str, ...]  # their types, in the order of StepSummary.optimizer
    steps: tuple[StepSummary, ...]


REFERENCE = "reference"
# in place of an optimizer's type: a program that has none, whose steps are calls of backward
BY_HAND = "by hand"


@dataclass(frozen=True)
class ProgramRun:
    """One execution of the program."""

    name: str  # a vendor's, or REFERENCE
    exit_code: int  # as shells count: 128 + n for signal n
    seconds: float
    stdout: str  # file name of the log inside the proof's folder
    stderr: str
    processes: tuple[ProcessSummary, ...]  # those that took at least one step, by rank


class ProofVerdict(str, Enum):
    """The verdict on a vendor's run."""

    EQUAL = "equal"  # bit for bit
    CLOSE = "close"  # within the tolerance
    PARTED = "parted"  # VendorResult.parting says where
    INCOMPARABLE = "incomparable"  # other steps, parameters or shapes; VendorResult.reason says which
    CRASHED = "crashed"  # one of the two runs; VendorResult.reason says which
    UNREPEATABLE = "unrepeatable"  # the original itself gives another result each time


class What(str, Enum):
    """What differs; within a step, in the order in which things come about."""

    LOSS = "loss"
    GRADIENT = "gradient"
    PARAMETER = "parameter"
    BUFFER = "buffer"


@dataclass(frozen=True)
class RunDifference:
    """One tensor that is not the same in both runs."""

    what: What
    step: int  # StepRecord.ordinal
    rank: int | None
    optimizer: int
    name: str  # of the parameter or buffer; of a loss, the place of its backward call
    reference: TensorFacts | None  # None: there was no gradient
    migrated: TensorFacts | None
    distance: float  # l2, estimated from the projections; of a loss, exact. inf if one is not finite
    relative: float  # distance / norm of the reference; inf if that is 0
    tolerance: float  # the largest distance that would have been within tolerance


class Cause(str, Enum):
    """What the operators of a step say about why the runs differ."""

    RESULT = "result"  # an operator gave another result for the same inputs
    RANDOM = "random"  # ... because it drew other random numbers
    ARGUMENTS = "arguments"  # the same tensors went into it with other numbers or options
    CALLS = "calls"  # the runs execute different operators
    DATA = "data"  # what came from outside, a batch for instance, was not the same
    STATE = "state"  # a parameter, a buffer or the optimizer's state was different before the step
    COMMUNICATION = "communication"  # another process contributed something else
    NONE = "none"  # all operators of the step gave the same results


@dataclass(frozen=True)
class OperatorCall:
    """One operator that one of the runs executed."""

    ordinal: int  # 1, 2, ...: within the recorded step
    name: str  # "aten::convolution"
    phase: str  # "forward", "backward", "optimizer"
    module: str  # the module whose forward was running, "layer1.0.conv1"; "" where none was
    place: str  # "train.py:57", the nearest line that is not PyTorch's; of a backward pass, that of the forward pass
    outputs: tuple[TensorFacts, ...]
    inputs: tuple[TensorFacts, ...] = ()
    arguments: str = ""  # what is no tensor: "0.5, True"
    node: str = ""  # of a backward pass: "ConvolutionBackward0"


@dataclass(frozen=True)
class OperatorDifference:
    """The first operator whose result differs although its inputs did not, or what else the operators show."""

    reference: OperatorCall | None  # None: this run had no such call
    migrated: OperatorCall | None
    output: int  # which of the outputs differs, of `Cause.DATA` and `STATE` which input; -1 if there is none
    distance: float  # l2, estimated; nan where there are no two tensors to compare
    relative: float
    cause: Cause = Cause.RESULT
    notes: tuple[str, ...] = ()  # what could not be seen: "compiled", "not looked into: flex_attention"
    step: int = 0  # whose operators these are: the first with other bits, which may lie before the parting


@dataclass(frozen=True)
class OperatorJudgement:
    """Whether the operator that was named is wrong, or its result differs as rounding does."""

    verdict: str  # of a comparison of records: normal, suspicious, fault ...
    sort: str  # of the error: tail, scale, precision ...; "": none
    own_error: float | None  # from its own inputs, against double precision, relative to the result's size
    limit: float | None  # what would have been normal
    why: Text | None
    record: str  # the call's tensors, as a file inside the proof's folder
    step: int  # whose they are, as `ferry record` counts steps: in rounds of all optimizers


@dataclass(frozen=True)
class VendorResult:
    """A vendor's run and the verdict on it."""

    vendor: str
    device_type: str
    verdict: ProofVerdict
    run: ProgramRun | None  # None: it was not started, since the original did not run
    compared_steps: int  # of all processes together
    reason: Text | None = None  # for verdicts without a parting: one sentence
    parting: RunDifference | None = None  # the first difference beyond the tolerance
    largest: RunDifference | None = None  # as a share of its tolerance; None if bit for bit
    operator: OperatorDifference | None = None  # the first that differs, where it was looked for and found
    judgement: OperatorJudgement | None = None  # of that operator, where it could be judged
    notes: tuple[Text, ...] = ()  # what else a reader should know: a scaler's other factor, updates by hand


@dataclass(frozen=True)
class ProofRequest:
    """What was to be proved."""

    original: tuple[str, ...]  # the command as the user would write it: "train.py", "--dummy"
    converted: str  # the converted program, with {vendor}; "" where the original itself ran through the layer
    vendors: tuple[str, ...]
    steps: int | None  # None: to the end
    seed: int
    processes: int  # started through torchrun; 0: without it
    same_weights: bool
    exact: bool
    rtol: float | None  # None: by dtype
    atol: float | None
    emulated: bool = False  # on the vendor's own plugin instead of a simulated device


@dataclass(frozen=True)
class Proof:
    """Everything that a report says."""

    request: ProofRequest
    reference: ProgramRun
    results: tuple[VendorResult, ...]
    torch: str
    date: str  # ISO 8601, UTC

    @property
    def holds(self) -> bool:
        """Whether every vendor's run is equal to the original, or close if that is enough."""
        enough = {ProofVerdict.EQUAL} if self.request.exact else {ProofVerdict.EQUAL, ProofVerdict.CLOSE}
        return all(result.verdict in enough for result in self.results)
