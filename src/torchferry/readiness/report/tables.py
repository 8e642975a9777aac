"""The judgements of all vendors side by side: by operator, by module, and by the user's lines of code."""

from __future__ import annotations

import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from torchferry.readiness.model import Advice, Capture, OperatorSupport, Readiness, Use, UseJudgement
from torchferry.report.records import file_and_line
from torchferry.text import Text

_Item = TypeVar("_Item")
_Key = TypeVar("_Key")
_RANK = {support: rank for rank, support in enumerate(OperatorSupport)}


@dataclass(frozen=True)
class OperatorSupportRow:
    """One operator, on every device."""

    operator: str
    calls: int
    seconds: float
    share: float  # of the time of all operators of all devices; of the calls where no time is known
    uses: tuple[Use, ...]  # that with the most time first
    judgements: tuple[tuple[UseJudgement, ...], ...]  # for each device, in the order of the uses

    @property
    def supports(self) -> list[OperatorSupport | None]:
        """The worst support of each device; None where the operator does not arrive at it."""
        return [worst(judgement.support for judgement in each) for each in self.judgements]

    @property
    def worst_rank(self) -> int:
        """How bad it is on the device that has the most trouble with it."""
        return max((_RANK[support] for support in self.supports if support is not None), default=0)

    @property
    def is_problem(self) -> bool:
        """Whether any device has a problem with it."""
        return any(support is not None and support.is_problem for support in self.supports)


@dataclass(frozen=True)
class Problem:
    """Uses of one operator that one device has the same problem with."""

    operator: str
    support: OperatorSupport
    share: float
    judgements: tuple[UseJudgement, ...]  # that with the most time first

    @property
    def uses(self) -> list[Use]:
        return [judgement.use for judgement in self.judgements]

    @property
    def calls(self) -> int:
        return sum(use.calls for use in self.uses)

    @property
    def moved_bytes(self) -> int:
        """What all calls move to the CPU and back."""
        return sum(judgement.moved_bytes for judgement in self.judgements)

    @property
    def reasons(self) -> list[Text]:
        """All reasons, each once."""
        return list(dict.fromkeys(judgement.reason for judgement in self.judgements))

    @property
    def advice(self) -> list[Advice]:
        """Each piece of advice once."""
        return list(dict.fromkeys(each for judgement in self.judgements for each in judgement.advice))


class Overview:
    """All devices' judgements of one capture."""

    def __init__(self, readinesses: Sequence[Readiness]) -> None:
        if not readinesses:
            raise ValueError("a report needs a readiness")
        self.readinesses = tuple(readinesses)
        self.capture: Capture = readinesses[0].capture
        # Not the same for every device: one takes a composite operator whole, another its parts.
        judged = {use_key(each.use): each.use for one in readinesses for each in one.judgements}
        self.uses = list(judged.values())
        self.is_timed = any(use.seconds > 0 for use in self.uses)
        self._total = sum(map(self.weight, self.uses))
        self._totals = {
            id(one): sum(self.weight(each.use) for each in one.judgements) for one in self.readinesses
        }
        self.operators = self._operators()

    @property
    def labels(self) -> list[str]:
        """The devices' names, with the versions of their adapters."""
        return [label(readiness) for readiness in self.readinesses]

    def weight(self, use: Use) -> float:
        """What a use counts: its time, or its calls where no time is known."""
        return use.seconds if self.is_timed else float(use.calls)

    def share(self, uses: Iterable[Use]) -> float:
        """The part of all that these are."""
        return self.part(sum(map(self.weight, uses)))

    def part(self, weight: float) -> float:
        """The part of all that this weight is."""
        return weight / self._total if self._total else 0.0

    def share_on(self, readiness: Readiness, judgements: Iterable[UseJudgement]) -> float:
        """The part of what one device has to do that these are."""
        total = self._totals[id(readiness)]
        return sum(self.weight(each.use) for each in judgements) / total if total else 0.0

    def problems(self, readiness: Readiness) -> list[Problem]:
        """What a user has to look at on one device: the worst first, then that with the most time."""
        found = _grouped(readiness.problems, lambda each: (each.use.operator, each.support))
        problems = [
            Problem(operator, support, self.share_on(readiness, group), self._by_weight(group))
            for (operator, support), group in found.items()
        ]
        return sorted(problems, key=lambda each: (-_RANK[each.support], -each.share, each.operator))

    def by_support(self, readiness: Readiness) -> dict[OperatorSupport, list[UseJudgement]]:
        """A device's judgements, the best support first."""
        groups = _grouped(readiness.judgements, lambda each: each.support)
        return {support: groups[support] for support in OperatorSupport if support in groups}

    def _operators(self) -> list[OperatorSupportRow]:
        """The operators that any device has the worst trouble with first, then those with the most time."""
        columns = [_grouped(one.judgements, lambda each: each.use.operator) for one in self.readinesses]
        rows = [
            OperatorSupportRow(
                operator,
                calls=sum(use.calls for use in uses),
                seconds=sum(use.seconds for use in uses),
                share=self.share(uses),
                uses=tuple(sorted(uses, key=lambda use: -self.weight(use))),
                judgements=tuple(self._by_weight(column.get(operator, [])) for column in columns),
            )
            for operator, uses in _grouped(self.uses, lambda use: use.operator).items()
        ]
        return sorted(rows, key=lambda row: (-row.worst_rank, -row.share, row.operator))

    def _by_weight(self, judgements: Iterable[UseJudgement]) -> tuple[UseJudgement, ...]:
        return tuple(sorted(judgements, key=lambda each: -self.weight(each.use)))


def use_key(use: Use) -> object:
    """What tells uses of a capture apart without comparing all that they hold; signatures and sites are shared."""
    return id(use.signature), id(use.site), use.expanded


def label(readiness: Readiness) -> str:
    """The vendor, and the version of its adapter."""
    return f"{readiness.vendor} {readiness.version}".strip()


def worst(supports: Iterable[OperatorSupport]) -> OperatorSupport | None:
    """The worst of several; None if there are none."""
    return max(supports, key=_RANK.__getitem__, default=None)


def _grouped(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    groups: dict[_Key, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


MAX_DEPTH = 30  # below that, the rest of a path is one name


@dataclass
class Tally:
    """How ready one device is for one part of the program."""

    weight: float = 0.0
    ready: float = 0.0
    calls: int = 0
    ready_calls: int = 0
    support: OperatorSupport | None = None  # the worst

    def add(self, judgement: UseJudgement, weight: float) -> None:
        """Count one judgement."""
        self.weight += weight
        self.calls += judgement.use.calls
        if judgement.support.is_ready:
            self.ready += weight
            self.ready_calls += judgement.use.calls
        self.support = worst(filter(None, (self.support, judgement.support)))

    @property
    def share(self) -> float:
        """The part that the device computes; of the calls where all took no time."""
        if self.weight:
            return self.ready / self.weight
        return self.ready_calls / self.calls if self.calls else 1.0

    @property
    def is_all(self) -> bool:
        """Whether the device computes all of it."""
        return self.calls == self.ready_calls


@dataclass
class CalledOperator:
    """An operator that a module itself calls."""

    operator: str
    tallies: list[Tally]
    uses: list[Use] = field(default_factory=list)


@dataclass
class ModuleNode:
    """A module, or the whole program."""

    path: str
    type: str
    tallies: list[Tally]  # one for each device, of all that lies below
    uses: int = 0
    weight: float = 0.0
    children: dict[str, ModuleNode] = field(default_factory=dict)
    operators: dict[str, CalledOperator] = field(default_factory=dict)  # its own calls

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def has_problem(self) -> bool:
        """Whether any device has a problem below."""
        return any(tally.support is not None and tally.support.is_problem for tally in self.tallies)


def module_tree(overview: Overview) -> ModuleNode:
    """The whole program, with its modules below it in the order of the model."""
    types = {module.path: module.type for module in overview.capture.modules}
    root = _new_node("", types, overview)
    for module in overview.capture.modules:  # the model's order, where it is known
        if module.path:
            list(_way(root, module.path, types, overview))
    for use in overview.uses:
        for node in _way(root, use.site.module, types, overview):
            node.uses += 1
            node.weight += overview.weight(use)
        _called(node, use.operator, overview).uses.append(use)
    for at, readiness in enumerate(overview.readinesses):
        for judgement in readiness.judgements:
            weight = overview.weight(judgement.use)
            for node in _way(root, judgement.use.site.module, types, overview):
                node.tallies[at].add(judgement, weight)
            _called(node, judgement.use.operator, overview).tallies[at].add(judgement, weight)
    _prune(root)
    return root


def _way(root: ModuleNode, path: str, types: dict[str, str], overview: Overview) -> Iterator[ModuleNode]:
    """The modules from the whole program down to this one, made where they are new."""
    node = root
    yield node
    names = path.split(".", MAX_DEPTH) if path else []
    for depth, name in enumerate(names, 1):
        if name not in node.children:
            node.children[name] = _new_node(".".join(names[:depth]), types, overview)
        node = node.children[name]
        yield node


def _new_node(path: str, types: dict[str, str], overview: Overview) -> ModuleNode:
    return ModuleNode(path, types.get(path, ""), [Tally() for _ in overview.readinesses])


def _called(node: ModuleNode, operator: str, overview: Overview) -> CalledOperator:
    if operator not in node.operators:
        node.operators[operator] = CalledOperator(operator, [Tally() for _ in overview.readinesses])
    return node.operators[operator]


def _prune(node: ModuleNode) -> None:
    """Leave out modules that called nothing."""
    node.children = {name: child for name, child in node.children.items() if child.uses}
    for child in node.children.values():
        _prune(child)


AROUND = 2
MAX_BYTES = 4_000_000


@dataclass(frozen=True)
class SourceLine:
    """One line of a file."""

    number: int
    text: str  # "" where the file can't be read
    share: float = 0.0
    # the worst of each device; empty: the line calls nothing
    supports: tuple[OperatorSupport | None, ...] = ()
    operators: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceFile:
    """A file of the program."""

    name: str  # as the capture names it
    is_readable: bool
    share: float
    lines: tuple[SourceLine, ...]  # those that call operators, and those around them


def source_files(overview: Overview, folder: Path | None) -> list[SourceFile]:
    """The files whose lines call operators, that with the most time first. `folder`: where the program ran."""
    places: dict[str, dict[int, list[Use]]] = {}
    for use in overview.uses:
        name, line = file_and_line(use.site.place)
        if line:
            places.setdefault(name, {}).setdefault(line, []).append(use)
    judged = [{use_key(each.use): each.support for each in one.judgements} for one in overview.readinesses]
    files = []
    for name, lines in places.items():
        texts = read_lines(name, folder)
        wanted = set(lines)
        if texts:
            wanted |= {near for line in lines for near in range(line - AROUND, line + AROUND + 1)}
            wanted = {line for line in wanted if line in lines or 1 <= line <= len(texts)}
        shown = []
        for number in sorted(wanted):
            text = texts[number - 1] if number <= len(texts) else ""
            uses = lines.get(number, [])
            columns = [worst(column[key] for key in map(use_key, uses) if key in column) for column in judged]
            operators = tuple(dict.fromkeys(use.operator for use in uses))
            supports = tuple(columns) if uses else ()
            shown.append(SourceLine(number, text, overview.share(uses), supports, operators))
        share = overview.share(use for uses in lines.values() for use in uses)
        files.append(SourceFile(name, bool(texts), share, tuple(shown)))
    return sorted(files, key=lambda file: (-file.share, file.name))


def read_lines(name: str, folder: Path | None) -> list[str]:
    """The lines of a Python file below the folder; none of any other file, because a capture may come from others."""
    if folder is None or "\0" in name:
        return []
    try:
        root = folder.resolve()
        path = (root / name).resolve()
        if not path.is_relative_to(root) or path.suffix != ".py" or not path.is_file():
            return []
        if path.stat().st_size > MAX_BYTES:
            return []
        with tokenize.open(path) as file:
            return file.read().splitlines()
    except (OSError, SyntaxError, UnicodeError, ValueError, RuntimeError):
        return []
