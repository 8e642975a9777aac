"""The verdict in plain words: which operator, where, what kind of error, how large, and what to do next."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from torchferry import units
from torchferry.accuracy.compare.model import RankComparison
from torchferry.accuracy.compare.network import NORMAL
from torchferry.accuracy.compare.statistics import growth
from torchferry.accuracy.judge.model import CallPair, ErrorKind, Judgement, PairDifference, Verdict
from torchferry.accuracy.model import INPUT_GRADIENT, Call, RecordHeader, TensorRecord
from torchferry.accuracy.report import words
from torchferry.report.commands import ferry_command
from torchferry.report.records import Grade
from torchferry.report.safe import both_on_one_line, one_line
from torchferry.text import Text

BAD = (Verdict.PROGRAM, Verdict.FAULT, Verdict.SUSPICIOUS, Verdict.UNEXPLAINED)
_OF_BOTH = (Verdict.PROGRAM, Verdict.UNEXPLAINED)  # may be said of calls that golden makes alone
_OTHERS = 5  # places where programs differ that are named besides the first
_FRAMES = 4  # lines of a stack that are shown
_RANK = re.compile(r"\.rank\d+(?=\.[^./]*$)")  # in the name of a file that one process of several wrote


def grade(comparisons: Sequence[RankComparison]) -> Grade:
    """What the comparison comes to in one line: that of the rank with the worst verdict."""
    worst = min(comparisons, key=lambda each: words.RANK_OF[_worst_verdict(each)])
    return Grade(headline(worst), words.VERDICT[_worst_verdict(worst)].tone)


def _worst_verdict(comparison: RankComparison) -> Verdict:
    culprit = comparison.culprit
    return Verdict.EQUAL if culprit is None else comparison.pairs[culprit].judgement.verdict


def headline(comparison: RankComparison) -> Text:
    """One sentence: what the comparison comes to."""
    if comparison.culprit is None:
        return _all_is_well(comparison)
    pair = comparison.pairs[comparison.culprit]
    judgement = pair.judgement
    call = call_of(pair)
    if judgement.verdict in _OF_BOTH:
        return _difference_of_programs(comparison, pair)
    sort = words.SORT[judgement.sort] if judgement.sort.value else words.VERDICT[judgement.verdict].meaning
    if comparison.mine.is_overview:
        module = _plain(module_of(call)) if module_of(call) else words.OUTSIDE
        operator = words.WATCHED.get(call.operator, _plain(one_line(call.operator)))
        sort = words.DIFFER if judgement.sort is ErrorKind.VALUES else sort
        return words.PARTS.format(step=call.step, module=module, operator=operator, sort=sort)
    if judgement.verdict is Verdict.FAULT:
        return words.FAULT_FOUND.format(operator=one_line(call.operator), sort=sort)
    known = Text(f": {sort.en}", f"：{sort.zh}") if judgement.sort.value else _plain("")
    return words.SUSPICION.format(operator=one_line(call.operator), sort=known)


def _difference_of_programs(comparison: RankComparison, pair: CallPair) -> Text:
    judgement, operator = pair.judgement, one_line(call_of(pair).operator)
    why = both_on_one_line(judgement.why or words.VERDICT[judgement.verdict].meaning)
    known = judgement.verdict is Verdict.PROGRAM
    if judgement.sort is ErrorKind.ARGUMENTS:
        said = words.ARGUMENTS_DIFFER if known else words.ARGUMENTS_UNEXPLAINED
        return said.format(operator=operator, arguments=why)
    if judgement.sort is ErrorKind.ONE_SIDED:
        said = words.ONE_SIDED if known else words.ONE_SIDED_UNEXPLAINED
        return said.format(side=words.MINE if pair.mine else words.GOLDEN, operator=operator)
    count, total = _judged_count(comparison)
    return words.UNEXPLAINED.format(operator=operator, why=why, count=count, total=total)


def _judged_count(comparison: RankComparison) -> tuple[int, int]:
    counts = Counter(pair.verdict for pair in comparison.pairs.outlines() if pair.has_mine)
    left = counts[Verdict.UNKNOWN] + counts[Verdict.UNEXPLAINED]
    return sum(counts.values()) - left, sum(counts.values())


def _all_is_well(comparison: RankComparison) -> Text:
    counts = verdict_counts(comparison)
    judged, total = _judged_count(comparison)
    if not judged:
        return words.NOTHING_KNOWN
    if counts[Verdict.EQUAL] == sum(counts.values()):
        return words.ALL_EQUAL.format(count=judged)
    if comparison.mine.is_overview:
        return words.NO_PARTING
    if judged < total:
        return words.FINE_AS_FAR_AS_KNOWN.format(count=judged, total=total, left=total - judged)
    return words.FINE.format(count=judged, total=total)


def details(comparison: RankComparison) -> list[tuple[Text, Text]]:
    """What is to be said of the culprit, with the name of each line."""
    if comparison.culprit is None:
        return []
    pair = comparison.pairs[comparison.culprit]
    judgement = pair.judgement
    is_unexplained = judgement.verdict is Verdict.UNEXPLAINED and judgement.sort is ErrorKind.NONE
    is_in_headline = judgement.sort is ErrorKind.ARGUMENTS or is_unexplained
    lines = [
        (words.WHERE, where_of(pair)),
        (words.CALLED_FROM, _plain(" < ".join(map(one_line, comparison.stack[:_FRAMES])))),
        (words.ERROR, errors(judgement)),
        (words.RESULT, _plain(result(pair))),
        (words.PICTURE, _plain(picture(pair))),
        (words.WHY, _plain("") if is_in_headline or judgement.why is None else judgement.why),
        *((words.ALSO, text) for text in _other_differences(comparison)),
    ]
    if pair.golden is not None and pair.mine is not None and pair.golden.operator != pair.mine.operator:
        matched = words.MATCHED_AS.format(operator=one_line(pair.golden.operator), how=words.HOW[pair.how])
        lines.append((words.HOW_COLUMN, matched))
    return [(name, both_on_one_line(text)) for name, text in lines if text.en]


def _other_differences(comparison: RankComparison) -> Iterator[Text]:
    """Where else the programs differ: one call of each operator and line."""
    seen: set[tuple[str, str]] = set()
    for at, each in enumerate(comparison.pairs.outlines()):
        key = (each.operator, each.place)
        if each.verdict is not Verdict.PROGRAM or key in seen:
            continue
        seen.add(key)
        if at != comparison.culprit:
            pair = comparison.pairs[at]
            why = pair.judgement.why or words.VERDICT[Verdict.PROGRAM].meaning
            yield words.ALSO_HERE.format(operator=one_line(each.operator), where=where_of(pair), why=why)
        if len(seen) > _OTHERS:
            return


def where_of(pair: CallPair) -> Text:
    """Call, step, phase, module and line; whose call it is where golden makes it alone."""
    at = words.CALL_AT if pair.mine is not None else words.GOLDEN_CALL_AT
    return where(call_of(pair), at)


def where(call: Call, at: Text = words.CALL_AT) -> Text:
    """Call, step, phase, module and line."""
    names = [_plain(one_line(each)) for each in (module_of(call), call.place, call.node)]
    parts = [at.format(number=call.number, step=call.step), words.phase(call.phase), *names]
    return _joined((part for part in parts if part.en), ", ", "，")


def errors(judgement: Judgement) -> Text:
    """Own error, golden's, and what would be normal."""
    if judgement.own_error is None:
        return _plain("")
    basis = words.BASIS.get(judgement.basis)
    said = _plain("") if basis is None else Text(f" ({basis.en})", f"（{basis.zh}）")
    parts = [words.ERRORS.format(own=units.short_number(judgement.own_error), basis=said)]
    if judgement.golden_error is not None:
        parts.append(words.GOLDENS.format(golden=units.short_number(judgement.golden_error)))
    if judgement.limit is not None:
        parts.append(words.LIMIT_IS.format(limit=units.short_number(judgement.limit)))
    return _joined(parts, "; ", "；")


def result(pair: CallPair) -> str:
    """The tensor that is worst, and what it holds."""
    difference = worst_difference(pair)
    if difference is not None:
        return f"{one_line(difference.mine.name)} {described(difference.mine)}"
    outputs = pair.mine.outputs if pair.mine else ()
    named = [tensor for tensor in outputs if tensor.name == pair.judgement.output] or list(outputs[:1])
    return f"{one_line(named[0].name)} {described(named[0])}" if named else ""


def picture(pair: CallPair) -> str:
    """Where the differences of the worst tensor lie."""
    difference = worst_difference(pair)
    return one_line(difference.picture) if difference else ""


def worst_difference(pair: CallPair) -> PairDifference | None:
    """The difference that the judgement is about."""
    named = (each for each in pair.outputs if each.mine.name == pair.judgement.output)
    return next(named, pair.outputs[0] if pair.outputs else None)


def described(tensor: TensorRecord) -> str:
    """Dtype and shape, as float32[8,64]."""
    return f"{one_line(tensor.dtype)}[{','.join(map(str, tensor.shape))}]"


def module_of(call: Call) -> str:
    """The model of a call, and the path in it."""
    return one_line(": ".join(filter(None, (call.model, path_in_model(call)))))


def path_in_model(call: Call) -> str:
    """Empty for the model itself, which goes by its own name."""
    return "" if call.module == call.model else call.module


def call_of(pair: CallPair) -> Call:
    """Mine, or golden where mine is missing."""
    call = pair.mine or pair.golden
    assert call is not None
    return call


def verdict_counts(comparison: RankComparison) -> Counter[Verdict]:
    """How many calls of mine have which verdict, and of golden alone where the programs differ."""
    return Counter(
        pair.verdict for pair in comparison.pairs.outlines() if pair.has_mine or pair.verdict in _OF_BOTH
    )


def is_judged(pair: CallPair) -> bool:
    """Whether anything is said of it: of calls that golden makes alone, as a rule nothing is."""
    return pair.mine is not None or pair.judgement.verdict in _OF_BOTH


def network(comparison: RankComparison) -> list[Text]:
    """The guide's rule for whole networks; nothing of a part of one, nor of a replay, whose operators do not depend on
    each other."""
    sides = [side for side in (comparison.mine, comparison.golden) if side is not None]
    if any(side.replayed or side.selected for side in sides):
        return []
    said = []
    for each in comparison.network[-2:]:
        text = words.NETWORK_NORMAL if each.mean_abs <= NORMAL else words.NETWORK_LARGE
        what = words.CURVE.get(each.what, _plain(each.what))
        said.append(text.format(step=each.step, what=what, mean=units.short_number(each.mean_abs)))
    return said


def grown(comparison: RankComparison) -> Text | None:
    """How the differences of statistics grow over the steps."""
    steps = growth(comparison.pairs.outlines()) if comparison.mine.is_overview else ()
    if len(steps) < 2:
        return None
    (start, first), (end, last) = steps[0], steps[-1]
    shown = {"first": units.short_number(first), "last": units.short_number(last)}
    return words.GROWTH.format(**shown, start=start, end=end)


def next_commands(comparison: RankComparison) -> list[tuple[Text, list[str]]]:
    """What to type next, with what it is good for."""
    if comparison.culprit is None:
        return []
    pair = comparison.pairs[comparison.culprit]
    call = call_of(pair)
    both = [comparison.mine_path, *filter(None, [comparison.golden_path])]
    if pair.judgement.verdict is Verdict.PROGRAM:
        return [(words.NEXT_ALL, [ferry_command("compare", *both, "--verbose")])]
    if comparison.mine.is_overview:
        return _place_commands(comparison, call)
    commands = []
    mine, path, vendor = pair.mine, comparison.mine_path, comparison.mine.vendor
    if mine is not None and vendor:  # the call in mine, whose inputs led to the result
        call_options = ["--from", path, "--call", str(mine.number), "--to", vendor]
        commands.append((words.NEXT_CASE, [ferry_command("case", mine.operator, *call_options)]))
    commands.append((words.NEXT_CUT, list(_cut_commands(comparison, pair))))
    is_unsure = not comparison.mine.replayed and pair.judgement.verdict is not Verdict.FAULT
    if comparison.golden and comparison.golden_path and is_unsure and vendor:
        replay_options = [*_target(comparison.mine), "-o", _beside(path, "replay")]
        replay = ferry_command("replay", comparison.golden_path, *replay_options)
        commands.append((words.NEXT_REPLAY, [replay]))
    return [*commands, (words.NEXT_ALL, [ferry_command("compare", *both, "--verbose")])]


def _cut_commands(comparison: RankComparison, pair: CallPair) -> Iterator[str]:
    """What takes this call out of the records: small enough to be sent to those who can mend it."""
    sides = ((comparison.mine_path, pair.mine), (comparison.golden_path, pair.golden))
    for path, call in sides:
        if call is not None and path:
            number = str(call.number)
            yield ferry_command("record", "cut", path, "--call", number, "-o", _beside(path, f"call{number}"))


def _place_commands(comparison: RankComparison, call: Call) -> list[tuple[Text, list[str]]]:
    """What to record of the place where runs part; where steps before it were not kept, statistics of those first."""
    good = max(
        (pair.step for pair in comparison.pairs.outlines() if pair.has_mine and pair.step < call.step),
        default=0,
    )
    if not any(side is not None and side.program for side in (comparison.mine, comparison.golden)):
        return _dump_configurations(call)
    if good and call.step - good > 1:
        wanted = ["--stats", "--first-step", str(good + 1), "--steps", str(call.step - good)]
        what = words.NEXT_NARROW.format(good=good, bad=call.step)
        return [(what, list(_record_commands(comparison, wanted, f"steps{good + 1}to{call.step}")))]
    place = _place_to_record(call)
    wanted = ["--first-step", str(call.step), "--steps", "1", *(["--in-module", place] if place else [])]
    return [(words.NEXT_RECORD, list(_record_commands(comparison, wanted, f"step{call.step}")))]


def _place_to_record(call: Call) -> str:
    """A module whose operators show what is wrong. The gradient that a module hands on may have gone through operators
    of the module around it, too."""
    if call.operator != INPUT_GRADIENT or call.module == call.model:
        return call.module
    return call.module.rpartition(".")[0]


def _dump_configurations(call: Call) -> list[tuple[Text, list[str]]]:
    """What to write into msprobe's config.json, whose steps begin at 0."""
    chosen = {"task": "tensor", "level": "mix", "step": [call.step - 1], "tensor": {"list": [call.node]}}
    return [(words.NEXT_DUMP, [one_line(json.dumps(chosen))])]


def _record_commands(comparison: RankComparison, wanted: Sequence[str], name: str) -> Iterator[str]:
    sides = [(comparison.mine, comparison.mine_path), (comparison.golden, comparison.golden_path)]
    for header, path in sides:
        if header is None or not header.program:
            continue
        try:
            given = shlex.split(header.options)
        except ValueError:  # a record that somebody has changed may hold anything
            given = []
        options = [*_target(header), *given, *wanted]
        whole = _RANK.sub("", path) if header.world > 1 else path
        command = ferry_command("record", *options, "-o", _beside(whole, name))
        yield f"{command} {one_line(header.program)}"


def _target(header: RecordHeader) -> list[str]:
    if not header.vendor:
        return []
    return ["--to", header.vendor, *(["--sim"] if header.simulated else [])]


def _beside(path: str, word: str) -> str:
    stem, dot, suffix = path.rpartition(".")
    return f"{stem}.{word}.{suffix}" if dot and "/" not in suffix else f"{path}.{word}"


def _joined(parts: Iterable[Text], english: str, chinese: str) -> Text:
    known = list(parts)
    return Text(english.join(part.en for part in known), chinese.join(part.zh for part in known))


def _plain(text: str) -> Text:
    return Text(text, text)


def attention(comparison: RankComparison) -> list[CallPair]:
    """The pairs that are not as they should be: faults first, each in the order of the program."""
    outlines = enumerate(comparison.pairs.outlines())
    bad = [(words.RANK_OF[pair.verdict], at) for at, pair in outlines if pair.verdict in BAD]
    return [comparison.pairs[at] for _, at in sorted(bad)]


def label(comparison: RankComparison, several: Sequence[RankComparison]) -> Text | None:
    """The rank, where there are several."""
    return words.RANK.format(rank=comparison.mine.rank) if len(several) > 1 else None
