"""Host logs for tests, in the forms that the runtime writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

FLOAT, HALF, INT64 = 0, 1, 9
NCHW, ND, NC1HWC0 = 0, 2, 3


def tensor(shape: Sequence[int], dtype: int = FLOAT, form: int = NCHW, storage: int | None = None) -> str:
    """A tensor as the runtime describes it."""
    sizes = list(shape)
    return (
        f"[TensorDesc] DataType = {dtype}, Format = {form}, StorageFormat = {form if storage is None else storage}, "
        f"Shape = {sizes}, StorageShape = {sizes}, shapeRange = [], memtype = 0, isConst = 0"
    )


class LogWriter:
    """Lines of one process; time goes on by a tenth of a second with each operator."""

    def __init__(self, process: int = 4242, start: float = 0.0) -> None:
        self.process = process
        self.seconds = start
        self.lines: list[str] = []

    def header(
        self, level: str = "INFO", module: str = "ASCENDCL", place: str = "op_compiler.cpp:390"
    ) -> str:
        """What stands before a message."""
        whole, part = divmod(round(self.seconds * 1000), 1000)
        clock = f"{10 + whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}.{part:03}.017"
        return f"[{level}] {module}({self.process},python3):2024-05-06-{clock} [{place}]{self.process} "

    def other(self, level: str = "INFO") -> None:
        """A line about something else."""
        self.lines.append(
            self.header(level, "RUNTIME", "api_impl.cc:746") + "KernelLaunch: stream_id=3, task_id=17."
        )

    def call(
        self,
        kind: str,
        inputs: Sequence[str],
        outputs: Sequence[str] = (),
        attributes: str = "{groups = 1}",
        *,
        mark: str = "aclopCompile",
    ) -> None:
        """A call of an operator."""
        self.seconds += 0.1
        self.other()
        parts = [
            *(f"InputDesc[{number}]: {text} " for number, text in enumerate(inputs)),
            *(f"OutputDesc[{number}]: {text} " for number, text in enumerate(outputs)),
        ]
        text = "".join(parts) + (f"Attr: {attributes}" if attributes else "")
        self.lines.append(f"{self.header()}{mark}AndExecute: {mark}::aclOp = OpType: {kind}, {text}")

    def compile(self, kind: str, milliseconds: float | None = None, *, start: bool = True) -> None:
        """The operator of the last call is compiled."""
        if start:
            missed = "begin to match model from dynamic opModels"
            self.lines.append(
                f"{self.header()}MatchOpModel: Match static opModels fail, {missed}. opType = {kind}"
            )
            self.lines.append(f"{self.header()}CompileOp: To compile op: {kind}, compileFlag is 0")
        if milliseconds is not None:
            self.seconds += milliseconds / 1000
            time = f"compile time is {milliseconds:f} millisecond"
            self.lines.append(f"{self.header('EVENT')}CompileOp: To compile op: {kind}, {time}")

    def write(self, file: Path, end: str = "\n") -> Path:
        """The log as a file."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes("".join(line + end for line in self.lines).encode())
        return file


def training(steps: int = 4, *, process: int = 4242, changing: bool = False) -> LogWriter:
    """Steps of a small network; everything is compiled in the first, and with changing shapes the product in each."""
    log = LogWriter(process)
    for step in range(steps):
        image = tensor([8, 3, 32, 32], HALF, NCHW)
        packed = tensor([8, 3, 32, 32], HALF, NCHW, NC1HWC0)
        rows = 8 + step if changing else 8
        calls = {
            "TransData": ([image], [packed]),
            "Conv2D": ([packed, tensor([16, 3, 3, 3], HALF)], [tensor([8, 16, 32, 32], HALF, NCHW, NC1HWC0)]),
            "MatMul": (
                [tensor([rows, 64], HALF, ND), tensor([64, 10], HALF, ND)],
                [tensor([rows, 10], HALF, ND)],
            ),
            "Cast": ([tensor([rows, 10], HALF, ND)], [tensor([rows, 10], FLOAT, ND)]),
        }
        for kind, (inputs, outputs) in calls.items():
            log.call(kind, inputs, outputs)
            if step == 0 or (changing and kind in ("MatMul", "Cast")):
                log.compile(kind, 250.0)
    return log
