"""A proof for the terminal: the verdicts first, then the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchferry import units
from torchferry.proof.model import Proof, ProofRequest, StepSummary, VendorResult
from torchferry.proof.report import comparison, sentences, words
from torchferry.proof.report.comparison import Gap, StepPair
from torchferry.report.commands import ferry_command
from torchferry.report.formats import Options
from torchferry.report.safe import visible
from torchferry.report.terminal import Screen, Words, assembled, empty_table, indented, plain, whole_line
from torchferry.text import Text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

# What to type after a proof that does not hold.

_REFERENCE = "reference.h5"


def next_commands(request: ProofRequest, result: VendorResult) -> list[str]:
    """Record the place where the bits first differ in both runs, and compare; none where no operator was judged."""
    if result.judgement is None or result.operator is None or result.operator.migrated is None:
        return []
    module = result.operator.migrated.module
    place = ["--seed", str(request.seed), "--first-step", str(result.judgement.step), "--steps", "1"]
    place += ["--in-module", module] if module else []
    place += ["--nproc", str(request.processes)] if request.processes else []
    kind = "--emulate" if request.emulated else "--sim"
    device = ["--to", result.vendor, kind, *(["--converted"] if request.converted else [])]
    migrated = list(request.original)
    if request.converted:
        migrated[migrated[0] == "-m"] = request.converted.replace("{vendor}", result.vendor)
    record = f"{result.vendor}.h5"
    commands = [
        ["record", *place, "-o", _REFERENCE, *request.original],
        ["record", *device, *place, "-o", record, *migrated],
        ["compare", record, _REFERENCE],
    ]
    return [ferry_command(*words) for words in commands]


ENDS = 6  # rows of a table's beginning and end


def to_text(proof: Proof, options: Options) -> str:
    """For a terminal, or without colours; the logs are those of runs that failed."""
    screen = Screen(options)
    for part in _ProofText(proof, options).parts():
        screen.part(part)
    return screen.text()


class _ProofText:
    def __init__(self, proof: Proof, options: Options) -> None:
        self._proof = proof
        self._logs = options.logs
        self._words = Words(options)
        self._say = options.say

    def parts(self) -> list[RenderableType]:
        """What to print, from top to bottom."""
        if not self._proof.results:
            return [self._words.plain(words.NOTHING)]
        parts: list[RenderableType] = [
            part for result in self._proof.results for part in self._verdict(result)
        ]
        scope = sentences.scope(self._proof)
        if scope:
            parts += [self._words.plain(scope, "dim")]
        for name, tail in self._logs.items():
            parts += ["", plain(f"{sentences.shown(name)}:", "bold"), plain(visible(tail))]
        for result in self._proof.results:
            for table in comparison.tables(self._proof, result):
                title = " · ".join(filter(None, (sentences.shown(result.vendor), self._say(table.title))))
                parts += ["", plain(title, "bold"), self._table(table, result)]
        return parts

    def _verdict(self, result: VendorResult) -> list[RenderableType]:
        name = f"{sentences.shown(result.vendor)} ({sentences.shown(result.device_type)})"
        said = self._say(sentences.verdict(result))
        lines: list[RenderableType] = [
            assembled((name, "bold"), ": ", (said, words.VERDICT[result.verdict].style))
        ]
        below = sentences.explanations(result)
        if result.operator:
            below += sentences.operator(result.operator)
        if result.judgement:
            below += sentences.judgement(result.judgement)
        lines += [indented(self._words.plain(sentence), 2) for sentence in below]
        commands = next_commands(self._proof.request, result)
        if commands:
            lines.append(indented(self._words.plain(words.NEXT), 2))
        return lines + [whole_line(f"    {command}") for command in commands]

    def _table(self, steps: comparison.ProofSteps, result: VendorResult) -> Table:
        table = empty_table()
        heads = step_heads(steps, result)
        for head in heads:
            table.add_column(self._words.plain(head), justify="right", overflow="fold")
        for row in steps.shortened(ENDS):
            table.add_row(*self._cells(row, steps, len(heads)))
        return table

    def _cells(self, row: StepPair | Gap, steps: comparison.ProofSteps, count: int) -> list[RenderableType]:
        if isinstance(row, Gap):
            said = self._say(words.LEFT_OUT.format(count=row.count))
            return [plain("…"), plain(said), *[plain("…")] * (count - 2)]
        optimizer = [plain(optimizer_name(row, steps))] if steps.several_optimizers else []
        difference = "" if row.difference is None else units.number(row.difference)
        return [
            plain(self._say(step_text(row))),
            *optimizer,
            plain(losses_text(row.reference)),
            plain(losses_text(row.migrated)),
            plain(difference),
            plain(norms_text(row)),
            plain(self._say(parameters_text(row)), "" if row.parameters_equal else "red"),
        ]


def step_heads(steps: comparison.ProofSteps, result: VendorResult) -> list[Text]:
    """The heads of a table of steps."""
    heads = [words.STEP, *([words.OPTIMIZER] if steps.several_optimizers else [])]
    heads += [words.LOSS_REFERENCE, words.LOSS.format(vendor=sentences.shown(result.vendor))]
    return [*heads, words.DIFFERENCE, words.GRADIENT_NORM, words.PARAMETERS]


def step_text(row: StepPair) -> Text:
    """The number of the step, and how many steps a gradient scaler has left out before it."""
    skipped = max(step.skipped if step else 0 for step in (row.reference, row.migrated))
    number = str(row.number)
    return words.SKIPPED.format(step=number, count=skipped) if skipped else Text(number, number)


def losses_text(step: StepSummary | None) -> str:
    """The losses of a step; of many, how many more there are."""
    values = [units.number(loss) for loss in comparison.losses(step)]
    return ", ".join(values[:3]) + (f" +{len(values) - 3}" if len(values) > 3 else "")


def norms_text(row: StepPair) -> str:
    """One number where both runs have the same, else both."""
    norms = [units.number(step.gradient_norm) for step in (row.reference, row.migrated) if step]
    return norms[0] if len(set(norms)) == 1 else " / ".join(norms)


def parameters_text(row: StepPair) -> Text:
    """Whether all parameters are the same after the step."""
    if row.parameters_equal is None:
        return words.MISSING
    return words.EQUAL if row.parameters_equal else words.DIFFERENT


def optimizer_name(row: StepPair, steps: comparison.ProofSteps) -> str:
    """The optimizer's type, with its place among the others."""
    step = row.reference or row.migrated
    if step is None or step.optimizer >= len(steps.optimizers):
        return ""
    return f"{step.optimizer} {sentences.shown(steps.optimizers[step.optimizer])}"
