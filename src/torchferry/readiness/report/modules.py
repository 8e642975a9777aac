"""The tree of the modules that called operators, and how ready each device is for what lies below each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from torchferry.readiness.model import OperatorSupport, Use, UseJudgement
from torchferry.readiness.report.tables import Overview, worst

MAX_DEPTH = 30  # below that, the rest of a path is one name


@dataclass
class Tally:
    """One device and one part of the program."""

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
        """Its own part of the path."""
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
    return node.operators.setdefault(
        operator, CalledOperator(operator, [Tally() for _ in overview.readinesses])
    )


def _prune(node: ModuleNode) -> None:
    """Leave out modules that called nothing."""
    node.children = {name: child for name, child in node.children.items() if child.uses}
    for child in node.children.values():
        _prune(child)
