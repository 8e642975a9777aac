"""What all formats say in the same words: the verdict, figures, the comparison of ranks and of runs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from torchferry import units
from torchferry.perf.compare.model import Measure, RunComparison
from torchferry.perf.model import MEDIUM_SHARE, Analysis, Diagnosis, Impact, TimePart
from torchferry.perf.report import words
from torchferry.report.records import Grade
from torchferry.text import Text

_NAMES = ("Python",)
LONGEST_NAME = 100  # names of kernels of C++ templates run to thousands of characters
_FOLDERS = 3  # of a path that are shown
SLOWER = 1.05  # a rank that works this much longer than the median one holds up the others

_BOTTLENECK = Text("Bottleneck: {title}.", "瓶颈：{title}。")
_GREATEST = Text("Largest finding: {title}{worth}.", "最大的发现：{title}{worth}。")
_WORTH = Text(", {weight:.1%} of the time", "，占时间的 {weight:.1%}")
_MOST = Text("The largest part of a step: {part} ({share:.1%}).", "单步中最大的部分：{part}（{share:.1%}）。")
_NONE = Text(
    "No bottleneck stands out: the device computes for {share:.1%} of the time.",
    "没有突出的瓶颈：设备有 {share:.1%} 的时间在计算。",
)
_NONE_ON_HOST = Text(
    "No bottleneck stands out: operators take {share:.1%} of the time.",
    "没有突出的瓶颈：算子占 {share:.1%} 的时间。",
)
_IDLE = Text(
    "No detector names the cause, but the device is idle for {share:.1%} of the time.",
    "没有检测器指出原因，但设备有 {share:.1%} 的时间空闲。",
)
_MOSTLY = 0.5
_UNNAMED = ("", "cpu", "privateuse1")  # what a trace says where it does not know the device's name
_NOTHING = Text("No bottleneck was found in the given files.", "在所给材料中未发现瓶颈。")
_SMALL = Text("{count} minor findings below.", "下文有 {count} 项小发现。")
_ONE_SMALL = Text("1 minor finding below.", "下文有 1 项小发现。")
_GAIN = Text("up to {gain:.1%} of the time: {basis}", "最多为 {gain:.1%} 的时间：{basis}")
_BARE_GAIN = Text("up to {gain:.1%} of the time", "最多为 {gain:.1%} 的时间")
_STEPS = Text("{count} steps of {each}, from {least} to {most}", "{count} 步，平均 {each}，{least} 至 {most}")
_ONE_STEP = Text("1 step of {each}", "1 步，{each}")
_WHOLE = Text("{each} in total", "共 {each}")
_SLOW_RANK = Text(
    "Rank {rank} holds up the others: its own work takes {own} per step, the median rank {median}.",
    "rank {rank} 拖慢其他 rank：每步自身工作 {own}，各 rank 的中位数为 {median}。",
)
_EVEN_RANKS = Text(
    "{count} ranks, evenly loaded: {least} to {most} of own work per step.",
    "{count} 个 rank，负载均匀：每步自身工作 {least} 至 {most}。",
)
_SLOWER = Text(
    "A step takes {mine}, {ratio:.2f} times the baseline's {other}.",
    "单步用时 {mine}，为基线 {other} 的 {ratio:.2f} 倍。",
)
_WORK = Text(
    "The device work takes {mine} per step, {ratio:.2f} times the baseline's {other}.",
    "仅计算任务每步 {mine}，为基线 {other} 的 {ratio:.2f} 倍。",
)
_MATCHED = Text(
    "{mine:.1%} of this run's work and {other:.1%} of the baseline's were matched operator by operator.",
    "本次运行 {mine:.1%}、基线 {other:.1%} 的工作量按算子一一匹配。",
)
_GREW = Text(
    "Largest part of the difference: {part}, {more} per step.", "其中最多的是：{part}，每步 {more}。"
)
_COSTLIEST = Text(
    "Largest extra cost: {operator} {shapes}, {more} per step.",
    "多耗时最多的：{operator} {shapes}，每步 {more}。",
)


def verdict(analysis: Analysis) -> list[Text]:
    """The greatest bottleneck in one line or two; that there is none, otherwise."""
    if analysis.diagnoses and analysis.diagnoses[0].severity is not Impact.LOW:
        first = analysis.diagnoses[0]
        if first.is_bottleneck:
            return [_BOTTLENECK.format(title=_lowered(first.title)), first.summary]
        return [*_greatest(analysis, first), first.summary]
    found = [_none(analysis)]
    count = len(analysis.diagnoses)
    if count:
        found.append(_SMALL.format(count=count) if count > 1 else _ONE_SMALL)
    return found


def _greatest(analysis: Analysis, first: Diagnosis) -> list[Text]:
    """A finding that matters, and is not what most of the time goes to."""
    worth = _WORTH.format(weight=first.weight) if first.weight >= MEDIUM_SHARE else Text("", "")
    said = [_GREATEST.format(title=_lowered(first.title), worth=worth)]
    rows = parts(analysis)
    if rows:
        _, name, _, most = max(rows, key=lambda row: row[3])
        if most > max(first.weight, _MOSTLY):
            said.append(_MOST.format(part=name, share=most))
    return said


def _none(analysis: Analysis) -> Text:
    if not analysis.seconds or TimePart.COMPUTE not in analysis.parts:
        return _NOTHING
    if analysis.is_host_only:
        return _NONE_ON_HOST.format(share=analysis.share(TimePart.COMPUTE))
    idle = analysis.share(TimePart.OTHER) + analysis.share(TimePart.HOST)
    if idle > _MOSTLY:
        return _IDLE.format(share=idle)
    return _NONE.format(share=analysis.share(TimePart.COMPUTE))


def joined(texts: Sequence[Text]) -> Text:
    """Sentences one after the other."""
    return Text(" ".join(text.en for text in texts), "".join(text.zh for text in texts))


def _lowered(title: Text) -> Text:
    """As it reads behind a colon; names in capitals stay."""
    keeps = title.en[1:2].isupper() or not title.en[:1].isalpha() or title.en.startswith(_NAMES)
    return title if keeps else Text(title.en[0].lower() + title.en[1:], title.zh)


def gain(diagnosis: Diagnosis) -> Text | None:
    """What the remedy saves, and how that is known."""
    if diagnosis.gain is None:
        return None
    if diagnosis.gain_basis is None:
        return _BARE_GAIN.format(gain=diagnosis.gain)
    return _GAIN.format(gain=diagnosis.gain, basis=diagnosis.gain_basis)


def steps(analysis: Analysis) -> Text | None:
    """How many, and how long."""
    times = [step.seconds for step in analysis.steps]
    if not times:
        return _WHOLE.format(each=units.duration(analysis.seconds)) if analysis.seconds else None
    mean = units.duration(statistics.fmean(times))
    if len(times) == 1:
        return _ONE_STEP.format(each=mean)
    return _STEPS.format(
        count=len(times), each=mean, least=units.duration(min(times)), most=units.duration(max(times))
    )


def device(analysis: Analysis) -> Text:
    """npu Ascend910B; and whether it is a simulated one."""
    if analysis.simulated and analysis.device in _UNNAMED:
        return Text("simulated device: times are those of this machine", "模拟设备：时间为本机的时间")
    named = " ".join(filter(None, [analysis.device, analysis.device_name]))
    return words.SIMULATED.format(device=named) if analysis.simulated else Text(named, named)


def about(analysis: Analysis) -> list[Text]:
    """How many steps there were, and on what device."""
    return [text for text in (steps(analysis), device(analysis)) if text and text.en]


def grade(analysis: Analysis) -> Grade:
    """How bad the greatest finding is; good if it is a small one."""
    first = analysis.diagnoses[0] if analysis.diagnoses else None
    if first is None or first.severity is Impact.LOW:
        return words.NOTHING_STANDS_OUT
    return words.SEVERITY[Impact.HIGH if first.is_bottleneck else Impact.MEDIUM]


def grade_of_all(report: RunsReport) -> Grade:
    """The verdict on the slowest process in one line."""
    shown = report.analyses[slowest(report.analyses)]
    return Grade(verdict(shown)[0], grade(shown).tone)


def parts(analysis: Analysis) -> list[tuple[TimePart, Text, float, float]]:
    """Each part with its name, seconds per step and share; without those that are empty."""
    names = words.PART_OF_HOST if analysis.is_host_only else words.PART
    count = len(analysis.steps) or 1
    return [
        (part, names[part], analysis.parts[part] / count, analysis.share(part))
        for part in TimePart
        if analysis.parts.get(part)
    ]


def unchecked(analysis: Analysis) -> list[tuple[str, Text]]:
    """The detectors that did not look, and why."""
    lacking = [
        (name, Text("needs {what}", "需要{what}").format(what=what))
        for name, what in analysis.unchecked.items()
    ]
    return lacking + [
        (name, Text("failed: {error}", "出错：{error}").format(error=error))
        for name, error in analysis.failed.items()
    ]


def unchecked_by_reason(analysis: Analysis) -> list[tuple[str, Text]]:
    """The detectors that did not look, those with the same reason together."""
    reasons: dict[Text, list[str]] = {}
    for name, why in unchecked(analysis):
        reasons.setdefault(why, []).append(name)
    return [(", ".join(names), why) for why, names in reasons.items()]


def rank_name(analysis: Analysis, position: int) -> str:
    """Its number, or its place in the list."""
    return str(position if analysis.rank is None else analysis.rank)


def step_seconds(analysis: Analysis) -> float:
    """The mean time of a step."""
    return analysis.seconds / (len(analysis.steps) or 1)


def own_seconds(analysis: Analysis) -> float:
    """The time of a step without waiting for others in communication."""
    waiting = analysis.parts.get(TimePart.COMMUNICATION, 0.0) / (len(analysis.steps) or 1)
    return step_seconds(analysis) - waiting


def slowest(analyses: Sequence[Analysis]) -> int:
    """The position of the rank that works longest by itself."""
    return max(range(len(analyses)), key=lambda at: own_seconds(analyses[at]))


def ranks(analyses: Sequence[Analysis]) -> Text:
    """Which rank holds up the others, if one does."""
    times = [own_seconds(each) for each in analyses]
    median = statistics.median(times)
    at = slowest(analyses)
    if median and times[at] > SLOWER * median:
        name = rank_name(analyses[at], at)
        return _SLOW_RANK.format(rank=name, own=units.duration(times[at]), median=units.duration(median))
    return _EVEN_RANKS.format(
        count=len(times), least=units.duration(min(times)), most=units.duration(max(times))
    )


def comparison(found: RunComparison) -> list[Text]:
    """The verdict on two runs."""
    said: list[Text] = []
    mine, other = found.compared, found.baseline
    if found.ratio is not None and mine.has_steps and other.has_steps:
        times = units.duration(mine.step_seconds), units.duration(other.step_seconds)
        said.append(_SLOWER.format(mine=times[0], other=times[1], ratio=found.ratio))
    if found.work_ratio is not None:
        times = units.duration(mine.work_seconds), units.duration(other.work_seconds)
        said.append(_WORK.format(mine=times[0], other=times[1], ratio=found.work_ratio))
    said += _grown(found)
    matched_other, matched_mine = found.matched_shares
    said.append(_MATCHED.format(mine=matched_mine, other=matched_other))
    if found.pairs and found.pairs[0].more > 0:
        pair = found.pairs[0]
        more = units.signed_duration(pair.more)
        said.append(_COSTLIEST.format(operator=pair.operator, shapes=pair.shapes, more=more))
    return said


def part_names(found: RunComparison) -> dict[TimePart, Text]:
    """As both runs are to be read."""
    on_host = found.compared.measure is Measure.HOST and found.baseline.measure is Measure.HOST
    return words.PART_OF_HOST if on_host else words.PART


def part_rows(found: RunComparison) -> list[tuple[TimePart, float, float]]:
    """Seconds per step in the baseline and in the run that is compared, of parts that either has."""
    mine, other = found.compared.parts, found.baseline.parts
    return [
        (part, other.get(part, 0.0), mine.get(part, 0.0))
        for part in TimePart
        if mine.get(part) or other.get(part)
    ]


def _grown(found: RunComparison) -> list[Text]:
    """What made the step longer, if it is longer."""
    if found.ratio is None or found.ratio <= 1 or not (found.compared.has_steps and found.baseline.has_steps):
        return []
    more = {part: mine - other for part, other, mine in part_rows(found)}
    if not more:
        return []
    part = max(more, key=more.__getitem__)
    return [_GREW.format(part=part_names(found)[part], more=units.signed_duration(more[part]))]


def place(text: str) -> str:
    """A line of the program: of a long path the end, which tells files apart."""
    folders = text.replace("\\", "/").split("/")
    return text if len(folders) <= _FOLDERS else "…/" + "/".join(folders[-_FOLDERS:])


# What a report of performance is made of.

TOP = 15  # rows of a table, unless asked otherwise


@dataclass(frozen=True)
class RunsReport:
    """The processes of one run, and how each compares with the baseline if there is one."""

    analyses: tuple[Analysis, ...]
    comparisons: tuple[RunComparison, ...] = ()
    top: int = TOP
