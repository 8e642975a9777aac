"""The sentences and short forms that all readiness reports share: the verdict in one line, sizes, shapes, places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchferry import units
from torchferry.readiness.model import (
    NOTES,
    Capture,
    OperatorSupport,
    Readiness,
    Signature,
    Special,
    TensorSpec,
    Use,
    UseJudgement,
    Value,
)
from torchferry.readiness.report import words
from torchferry.readiness.report.tables import label
from torchferry.report.safe import one_line, shortened
from torchferry.text import Text

MAX_NAMES = 5
MAX_TEXT = 60
MAX_ITEMS = 8


def verdict(readiness: Readiness) -> Text:
    """The readiness in one line: ascend 2.13: 98.2 % of operator time has a device kernel; ..."""
    return words.VERDICT.format(vendor=one_line(label(readiness)), said=said(readiness))


def said(readiness: Readiness) -> Text:
    """The verdict without the device's name."""
    judgements = readiness.judgements
    if not judgements:
        return words.NOTHING_JUDGED
    if all(judgement.support is OperatorSupport.UNKNOWN for judgement in judgements):
        return words.NOTHING_KNOWN.format(count=len(readiness.operators(OperatorSupport.UNKNOWN)))
    clauses = [_ready_clause(readiness)]
    for support, forms in words.CLAUSES.items():
        clauses += _clause(readiness, support, forms)
    if len(clauses) == 1:
        clauses.append(words.ALL_READY)
    unknown = words.UNKNOWN if readiness.complete else words.UNLISTED
    clauses += _clause(readiness, OperatorSupport.UNKNOWN, unknown)
    return Text("; ".join(clause.en for clause in clauses), "；".join(clause.zh for clause in clauses))


def _ready_clause(readiness: Readiness) -> Text:
    is_timed = readiness.seconds > 0
    if any(judgement.support is OperatorSupport.UNKNOWN for judgement in readiness.judgements):
        said = words.KNOWN_TIME if is_timed else words.KNOWN_CALLS
    else:
        said = words.READY_TIME if is_timed else words.READY_CALLS
    return said.format(share=ready_percent(readiness))


def _clause(readiness: Readiness, support: OperatorSupport, forms: tuple[Text, Text]) -> list[Text]:
    operators = readiness.operators(support)
    if not operators:
        return []
    said = forms[len(operators) > 1].format(count=len(operators), names=_names(operators))
    if support is OperatorSupport.FALLBACK:
        said = _with_bytes(said, readiness)
    return [said]


def _names(operators: Sequence[str]) -> Text:
    shown = [shortened(operator, MAX_TEXT) for operator in operators[:MAX_NAMES]]
    names = Text(", ".join(shown), "、".join(shown))
    more = len(operators) - len(shown)
    return words.AND_MORE_NAMES.format(names=names, count=more) if more else names


def _with_bytes(said: Text, readiness: Readiness) -> Text:
    count = sum(each.moved_bytes for each in readiness.judgements if each.support is OperatorSupport.FALLBACK)
    cost = moved(count, readiness.capture)
    return words.WITH_COST.format(said=said, cost=cost) if cost else said


def moved(count: int, capture: Capture) -> Text | None:
    """What goes to the CPU and back; for each step, where there were steps. None if that is nothing."""
    if not count:
        return None
    form = words.PER_STEP if capture.steps else words.PER_RUN
    return form.format(size=units.size(count / max(capture.steps, 1)))


def ready_percent(readiness: Readiness) -> str:
    """The share that the device computes; 100 % is said only where that is all."""
    return units.percent_of_all(readiness.ready_share, is_all(readiness.judgements))


def is_all(judgements: Iterable[UseJudgement]) -> bool:
    """Whether the device computes all of it."""
    return all(judgement.support.is_ready for judgement in judgements)


def tensor(spec: TensorSpec) -> str:
    """float32[8,64,56,56]; a layout other than strided is named."""
    layout = "" if spec.layout == "strided" else f" {one_line(spec.layout)}"
    return f"{one_line(spec.dtype)}[{','.join(map(str, spec.shape))}]{layout}"


def stride(spec: TensorSpec) -> str:
    """(200704,3136,56,1); a dash where there is none."""
    return "–" if spec.stride is None else f"({','.join(map(str, spec.stride))})"


def is_contiguous(spec: TensorSpec) -> bool:
    """Whether the strides are those of a new tensor; those of dimensions of one element don't matter."""
    expected = 1
    for length, step in zip(reversed(spec.shape), reversed(spec.stride or ()), strict=False):
        if length != 1 and step != expected:
            return False
        expected *= length
    return True


def tensors(specs: Sequence[TensorSpec], most: int = MAX_ITEMS) -> str:
    """Several, of which so many are shown."""
    shown = [tensor(spec) for spec in specs[:most]]
    return ", ".join(shown) + (f", … +{len(specs) - most}" if len(specs) > most else "")


def dtypes(uses: Iterable[Use]) -> str:
    """Each dtype of several uses once."""
    return ", ".join(dict.fromkeys(one_line(dtype) for use in uses for dtype in use.signature.dtypes))


def value(given: Value) -> str:
    """An argument as text; tensors by their shape."""
    if isinstance(given, TensorSpec):
        return tensor(given)
    if isinstance(given, Special):
        return one_line(given.text)
    if isinstance(given, tuple):
        shown = [value(each) for each in given[:MAX_ITEMS]]
        return f"[{', '.join(shown)}{', …' if len(given) > MAX_ITEMS else ''}]"
    return shortened(repr(given), MAX_TEXT)


def arguments(signature: Signature) -> str:
    """The arguments that hold no tensor: stride=[1, 1], bias=None."""
    given = [each for each in signature.arguments if not Signature("", (each,)).inputs]
    return ", ".join(f"{one_line(each.name)}={value(each.value)}" for each in given)


def place(use: Use) -> str:
    """The line of the user's code, on one line itself."""
    return one_line(use.site.place)


def module(use: Use) -> str:
    """The module, and the composite operator that made the call."""
    inside = f"({one_line(use.site.inside)})" if use.site.inside else ""
    return f"{one_line(use.site.module)} {inside}".strip()


def several(texts: Iterable[str]) -> Text:
    """The first of several different texts, and how many more there are."""
    found = [text for text in dict.fromkeys(texts) if text]
    if len(found) < 2:
        return Text(*[found[0] if found else ""] * 2)
    return words.SEVERAL.format(first=found[0], count=len(found) - 1)


def facts(capture: Capture, judged: int) -> list[tuple[Text, str | int]]:
    """What the reports say of the run itself."""
    return [
        (words.PROGRAM, one_line(capture.program)),
        (words.DEVICE, one_line(capture.device)),
        (words.TORCH, one_line(capture.torch)),
        (words.STEPS, capture.steps),
        (words.PROCESSES, capture.processes),
        (words.JUDGED, judged),
        (words.NOT_JUDGED, max(len(capture.uses) - judged, 0)),
    ]


def note(key: str) -> Text:
    """What a capture could not see; the key of a later version is shown as it is."""
    return NOTES.get(key, Text(*[one_line(key)] * 2))
