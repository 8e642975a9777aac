"""The sentences that all of a proof's reports share: verdicts, partings, operators."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from torchferry import units
from torchferry.proof.model import (
    Cause,
    OperatorCall,
    OperatorDifference,
    OperatorJudgement,
    Proof,
    ProofVerdict,
    RunDifference,
    TensorFacts,
    VendorResult,
    What,
)
from torchferry.proof.recordings import last_words
from torchferry.proof.report import words
from torchferry.proof.report.comparison import all_runs
from torchferry.report.records import BAD, GOOD, Grade
from torchferry.report.safe import both_on_one_line, one_line, shortened
from torchferry.text import Text, joined_chinese

MAX_NAME = 160


def verdict(result: VendorResult) -> Text:
    """The verdict, and how much it rests on."""
    said = words.VERDICT[result.verdict].name
    if result.verdict in (ProofVerdict.EQUAL, ProofVerdict.CLOSE, ProofVerdict.PARTED):
        steps = result.compared_steps
        compared = words.COMPARED_ONE if steps == 1 else words.COMPARED.format(count=steps)
        said = Text(f"{said.en}, {compared.en}", f"{said.zh}，{compared.zh}")
    return said


def grade(proof: Proof) -> Grade:
    """Each vendor's verdict with what it rests on and what it does not cover, in one line."""
    said = [_of_vendor(proof, result) for result in proof.results] or [words.NOTHING]
    line = Text("; ".join(each.en for each in said), "；".join(each.zh for each in said))
    return Grade(line, GOOD if proof.holds else BAD)


def _of_vendor(proof: Proof, result: VendorResult) -> Text:
    vendor, name = shown(result.vendor), words.VERDICT[result.verdict].name
    if result.verdict not in (ProofVerdict.EQUAL, ProofVerdict.CLOSE):
        said = [verdict(result), *explanations(result)[:1]]
        joined = Text(": ".join(each.en for each in said), "：".join(each.zh for each in said))
        return words.FAILED_FOR.format(vendor=vendor, verdict=joined)
    processes = len(proof.reference.processes)
    form = words.SCOPE_RANKS if processes > 1 else words.SCOPE_STEPS
    return words.IN_ONE_LINE.format(
        vendor=vendor,
        verdict=name,
        steps=form.format(count=result.compared_steps, processes=processes),
        seed=proof.request.seed,
        device=words.AN_EMULATED if proof.request.emulated else words.A_SIMULATED,
    )


def scope(proof: Proof) -> Text | None:
    """What the verdicts that hold rest on, and what they do not show; None if none holds."""
    equal = [each for each in proof.results if each.verdict in (ProofVerdict.EQUAL, ProofVerdict.CLOSE)]
    if not equal:
        return None
    counts = sorted({each.compared_steps for each in equal})
    processes = len(proof.reference.processes)
    form = words.SCOPE_RANKS if processes > 1 else words.SCOPE_STEPS
    arguments = proof.request.original[2 if proof.request.original[:1] == ("-m",) else 1 :]
    scope = words.SCOPE_EMULATED if proof.request.emulated else words.SCOPE
    return scope.format(
        steps=form.format(count="/".join(map(str, counts)), processes=processes),
        seed=proof.request.seed,
        arguments=words.SCOPE_ARGUMENTS if arguments else words.SCOPE_NO_ARGUMENTS,
        device=_listed((shown(each.device_type) for each in equal), "、"),
    )


def explanations(result: VendorResult) -> list[Text]:
    """The sentences below a verdict: where the runs parted, the largest difference, why nothing was compared."""
    said = [both_on_one_line(result.reason)] if result.reason else []
    if result.parting:
        said.append(parting(result.parting))
    elif result.largest:
        said.append(_in_rank(result.largest, _sentence(words.LARGEST, result.largest)))
    if result.verdict is ProofVerdict.CRASHED and result.run and result.run.exit_code:
        said.append(words.EXIT_CODE.format(code=result.run.exit_code))
    return said + [both_on_one_line(note) for note in result.notes]


def parting(difference: RunDifference) -> Text:
    """A sentence that says where the runs parted."""
    if difference.reference is None or difference.migrated is None:
        said = joined_chinese(words.NO_GRADIENT.format(step=difference.step, what=_what(difference)))
    else:
        said = _sentence(words.PARTED_AT, difference)
    return _in_rank(difference, said)


def operator(difference: OperatorDifference) -> list[Text]:
    """What the operators of the step say, and how far apart two tensors are."""
    said = [words.BITS_DIFFER.format(step=difference.step)] if difference.step else []
    said += [
        words.CAUSE[difference.cause].format(
            reference=call(difference.reference),
            migrated=call(difference.migrated),
            ours=_arguments(difference.migrated),
            theirs=_arguments(difference.reference),
        )
    ]
    said += _apart(difference)
    for note in difference.notes:
        said.append(words.COMPILED if note == "compiled" else Text(shown(note), shown(note)))
    return said


def judgement(made: OperatorJudgement) -> list[Text]:
    """Whether the operator is wrong."""
    said = [words.JUDGED_NORMAL if made.why is None else words.JUDGED_WRONG.format(why=made.why)]
    if made.own_error is not None and made.limit is not None:
        said.append(
            words.JUDGED_ERRORS.format(own=units.number(made.own_error), limit=units.number(made.limit))
        )
    return said


def _apart(difference: OperatorDifference) -> list[Text]:
    """How the tensors differ, where there are two: in kind, else in distance."""
    outside = difference.cause in (Cause.DATA, Cause.STATE)
    which = words.INPUT if outside else words.OUTPUT
    pair = [
        (made.inputs if outside else made.outputs)[difference.output : difference.output + 1]
        for made in (difference.reference, difference.migrated)
        if made and difference.output >= 0
    ]
    if len(pair) == 2 and all(pair) and _kind(pair[0][0]) != _kind(pair[1][0]):
        reference, migrated = (_kind(facts[0]) for facts in pair)
        kinds = {"reference": reference, "migrated": migrated}
        return [words.OTHER_KIND.format(which=which, position=difference.output, **kinds)]
    if difference.output < 0 or math.isnan(difference.distance):
        return []
    numbers = {"distance": units.number(difference.distance), "relative": units.number(difference.relative)}
    return [words.APART.format(which=which, position=difference.output, **numbers)]


def call(made: OperatorCall | None) -> Text:
    """An operator, and where it was called."""
    if made is None:
        return words.NO_CALL
    phase = words.PHASE.get(made.phase, Text(shown(made.phase), shown(made.phase)))
    where = _listed(filter(None, (shown(made.module), shown(made.place))))
    if not where.en:
        return words.AT_PHASE.format(name=shown(made.name), phase=phase)
    return words.AT.format(name=shown(made.name), phase=phase, place=where)


def _listed(names: Iterable[str], comma: str = "，") -> Text:
    known = list(names)
    return Text(", ".join(known), comma.join(known))


def tensor(facts: TensorFacts) -> str:
    """float32[4, 3], and the norm."""
    return f"{_kind(facts)} ‖{units.number(facts.norm)}‖"


def shown(text: str) -> str:
    """Text of the user's project on one line, none of it invisible."""
    return shortened(one_line(text), MAX_NAME)


def _sentence(form: Text, difference: RunDifference) -> Text:
    said = form.format(
        step=difference.step,
        what=_what(difference),
        distance=units.number(difference.distance),
        relative=units.number(difference.relative),
        tolerance=units.number(difference.tolerance),
    )
    return joined_chinese(said)


def _what(difference: RunDifference) -> Text:
    what = words.WHAT[difference.what].format(name=shown(difference.name))
    if difference.what is What.LOSS and difference.name:
        return Text(f"{what.en} ({shown(difference.name)})", f"{what.zh}（{shown(difference.name)}）")
    return what


def _in_rank(difference: RunDifference, said: Text) -> Text:
    return said if difference.rank is None else words.IN_RANK.format(rank=difference.rank, sentence=said)


def _kind(facts: TensorFacts) -> str:
    return f"{shown(facts.dtype)}{list(facts.shape)}"


def _arguments(made: OperatorCall | None) -> str:
    return shown(made.arguments) if made else ""


# The last words of runs that failed, for the reports.


def log_tails(proof: Proof, folder: Path) -> dict[str, str]:
    """By name of the run, what each failed run wrote last: to stderr, or if nothing, to stdout."""
    tails = {}
    for run in all_runs(proof):
        files = (folder / name for name in (run.stderr, run.stdout) if name)
        said = next((words for file in files if file.is_file() and (words := last_words(file))), "")
        if run.exit_code and said:
            tails[run.name] = said
    return tails
