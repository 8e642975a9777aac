"""What a reader should know about a comparison besides its figures. No torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec

from torchferry.accuracy.compare.matching import NOTHING
from torchferry.accuracy.compare.rows import PairRows
from torchferry.accuracy.model import Header, Kept
from torchferry.report.safe import one_line
from torchferry.text import Text

_LONELY = Text(
    "ranks {ranks} are in one of the records only, and were left out",
    "rank {ranks} 只在其中一份记录里，未参与比较",
)
_INCOMPLETE = Text(
    "{side}: the run was cut off; the record ends at its last complete operator",
    "{side}：运行被中断；记录到最后一个完整的算子为止",
)
_SIDE = {"mine": Text("mine", "待测记录"), "golden": Text("golden", "标杆记录")}
_SELECTED = Text("{side}: only some calls were recorded: {selected}", "{side}：只记录了部分调用：{selected}")
_COMPILED = Text(
    "{side}: some code was compiled, so that its operators could not be seen",
    "{side}：部分代码经过编译，其中的算子无法看到",
)
_NOTE = Text("{side}: {note}", "{side}：{note}")
_NO_TORCH = Text(
    "PyTorch is not installed here: golden was taken for right, and nothing was computed in double precision",
    "此处未安装 PyTorch：以标杆为准，没有用双精度重新计算",
)
_UNMATCHED = Text(
    "only {side} calls: {calls}{more} (--all lists them)", "只有{side}调用：{calls}{more}（--all 可列出）"
)
_MORE = Text(", and {count} more", "，另有 {count} 个")
_NAMED = 6  # operators of one side
_PROGRAMS = Text("these are different programs: {mine}, and {golden}", "这是不同的程序：{mine} 与 {golden}")
_VERSIONS = Text(
    "different versions of PyTorch, which may call other operators: {mine} here, {golden} in golden",
    "PyTorch 版本不同，调用的算子可能不同：待测为 {mine}，标杆为 {golden}",
)
_LEFT_OUT = Text(
    "of {count} calls that are as they should be, only the verdict is reported: there are too many for all figures",
    "调用过多，其中 {count} 个正常的调用只报告判定，不列出各项指标",
)


def lonely_ranks(ranks: Sequence[int]) -> Text:
    """Of ranks that one side has."""
    return _LONELY.format(ranks=", ".join(map(str, ranks)))


def of_comparison(
    mine: Header, golden: Header | None, unmatched: Sequence[Text] = (), left_out: int = 0
) -> tuple[Text, ...]:
    """All that is to be said about two records; `unmatched` tells of calls without a counterpart."""
    found = [*_of_header(mine, "mine"), *(_of_header(golden, "golden") if golden else ())]
    if mine.kept is Kept.TENSORS and find_spec("torch") is None:
        found.append(_NO_TORCH)
    found += _of_both(mine, golden) if golden is not None else ()
    found += unmatched if golden is not None else ()
    if left_out:
        found.append(_LEFT_OUT.format(count=left_out))
    return tuple(found)


def unmatched_counts(pairs: PairRows) -> tuple[int, int]:
    """Calls that the other side should have and has not: of mine, of golden."""
    sides = Counter((each.has_mine, each.has_golden) for each in pairs.outlines() if each.how == NOTHING)
    return sides[True, False], sides[False, True]


def of_unmatched(pairs: PairRows) -> list[Text]:
    """The calls that the other side should have and has not: by operator and line, the first ones first."""
    found = []
    for side, has_mine in (("mine", True), ("golden", False)):
        calls = Counter(
            (each.operator, each.place)
            for each in pairs.outlines()
            if each.how == NOTHING and each.has_mine is has_mine and each.has_golden is not has_mine
        )
        named = [
            f"{one_line(operator)}{f' x {count}' if count > 1 else ''}{f' ({one_line(place)})' if place else ''}"
            for (operator, place), count in list(calls.items())[:_NAMED]
        ]
        left = sum(list(calls.values())[_NAMED:])
        more = _MORE.format(count=left) if left else Text("", "")
        if named:
            found.append(_UNMATCHED.format(side=_SIDE[side], calls=", ".join(named), more=more))
    return found


def _of_both(mine: Header, golden: Header) -> Iterator[Text]:
    ours, theirs = (_script(header.program) for header in (mine, golden))
    if ours and theirs and ours != theirs:
        yield _PROGRAMS.format(mine=mine.program, golden=golden.program)
    if mine.torch.partition("+")[0] != golden.torch.partition("+")[0] and mine.torch and golden.torch:
        yield _VERSIONS.format(mine=mine.torch, golden=golden.torch)


def _script(program: str) -> str:
    """Its name, wherever it lies; "" of a module or what is no command line."""
    first = program.partition(" ")[0]
    return "" if first.startswith("-") else first.rpartition("/")[2]


def _of_header(header: Header, side: str) -> Iterator[Text]:
    name = _SIDE[side]
    if not header.complete:
        yield _INCOMPLETE.format(side=name)
    if header.selected:
        yield _SELECTED.format(side=name, selected=header.selected)
    for note in header.notes:
        yield _COMPILED.format(side=name) if note == "compiled" else _NOTE.format(side=name, note=note)
