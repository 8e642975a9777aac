"""What a training program uses, by what its names mean: parallel processes, mixed precision, data parallelism."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from torchferry.source.module import PythonModule
from torchferry.source.walk import WalkState, walk_all
from torchferry.vendors.model import Vendor


class Conditions:
    """What the `if`s of a module say of its lines."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree

    def is_dead(self, line: int) -> bool:
        """Whether a line stands under `if False:` or its like."""
        return any(
            first <= line <= last and self.value(test) is not None and self.value(test) is not wanted
            for first, last, test, wanted in self._branches
        )

    def tests(self, line: int) -> list[ast.expr]:
        """What must hold for a line to run."""
        return [test for first, last, test, wanted in self._branches if first <= line <= last and wanted]

    def value(self, test: ast.expr) -> bool | None:
        """Whether a test holds, where it is written out; None: only the run knows."""
        if isinstance(test, ast.Constant):
            return bool(test.value)
        if isinstance(test, ast.Name):
            return self._flags.get(test.id)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.value(test.operand)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            decides = isinstance(test.op, ast.Or)
            values = [self.value(each) for each in test.values]
            if decides in values:
                return decides
            return None if None in values else not decides
        return None

    @cached_property
    def _branches(self) -> list[tuple[int, int, ast.expr, bool]]:
        found = []
        for node in ast.walk(self._tree):
            if isinstance(node, (ast.If, ast.While)):
                for body, wanted in ((node.body, True), (node.orelse, False)):
                    if body:
                        found.append((body[0].lineno, body[-1].end_lineno or 0, node.test, wanted))
        return found

    @cached_property
    def _flags(self) -> dict[str, bool]:
        """Names that the module binds once, to True or False."""
        bound: dict[str, list[ast.expr | None]] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        bound.setdefault(target.id, []).append(node.value)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                bound.setdefault(node.id, [])
            elif isinstance(node, ast.arg):
                bound.setdefault(node.arg, []).append(None)
        return {
            name: bool(values[0].value)
            for name, values in bound.items()
            if len(values) == 1 and isinstance(values[0], ast.Constant) and isinstance(values[0].value, bool)
        }


def options_off_by_default(modules: Mapping[str, PythonModule]) -> dict[str, str]:
    """Options that switch something on, by the attribute that they set."""
    found = {}
    calls = (
        node for module in modules.values() for node in ast.walk(module.tree) if isinstance(node, ast.Call)
    )
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
            names = [str(word.value) for word in call.args if isinstance(word, ast.Constant)]
            option = next((name for name in names if name.startswith("--")), "")  # as argparse chooses, too
            words = {word.arg: word.value for word in call.keywords}
            # What it is without the option: by its default, else by its action.
            default, action = words.get("default"), words.get("action")
            if default is not None:
                is_off = isinstance(default, ast.Constant) and default.value is False
            else:
                is_off = isinstance(action, ast.Constant) and action.value == "store_true"
            if option and is_off:
                dest = words.get("dest")
                plain = option.removeprefix("--").replace("-", "_")
                found[str(dest.value) if isinstance(dest, ast.Constant) else plain] = option
    return found


# Libraries that do it for the program where its configuration asks for it.
_LIBRARIES = {
    "accelerate.Accelerator", "colossalai.booster.Booster", "composer.Trainer", "deepspeed.initialize",
    "lightning.Fabric", "lightning.Trainer", "lightning.fabric.Fabric", "lightning.pytorch.Trainer",
    "mmengine.runner.Runner", "pytorch_lightning.Trainer", "transformers.Seq2SeqTrainer", "transformers.Trainer",
    "trl.SFTTrainer", "ultralytics.YOLO",
}  # fmt: skip
_DISTRIBUTED = {
    "torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel", "torch.distributed.fsdp.fully_shard",
    "torch.distributed._composable.replicate", "horovod.torch.DistributedOptimizer",
    "mmcv.parallel.MMDistributedDataParallel", "mmengine.model.MMDistributedDataParallel",
}  # fmt: skip
_AMP = {
    "torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast", "torch.cuda.amp.autocast",
    "torch.cuda.amp.autocast_mode.autocast", "mmengine.optim.AmpOptimWrapper", "mmcv.runner.auto_fp16",
}  # fmt: skip
# Built for CUDA alone, where the vendor has no build of its own.
_APEX = {"amp": {"apex.amp.initialize"}, "distributed": {"apex.parallel.DistributedDataParallel"}}
ONE_PROCESS = {"torch.nn.DataParallel", "torch.nn.parallel.DataParallel"}
# Arguments of those libraries that say it, and values that say no; others, where they are written out, say yes.
_ARGUMENTS = {"amp": ("mixed_precision", "precision", "fp16", "bf16"), "distributed": ("strategy",)}
_NO = frozenset((False, None, 0, 32, 64, "no", "fp32", "32", "32-true", "64", "64-true", "dp"))
_CONFIGURES = {"transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments"}
_COMPARING = (ast.Compare, ast.arg, ast.AnnAssign, ast.ExceptHandler)
_ASKS_FOR_THE_TYPE = ("isinstance", "issubclass", "hasattr", "type")


class Certainty(Enum):
    """How sure a place is, the surest first."""

    SHOWN = "shown"
    SWITCHED = "switched"  # only where an option is given
    LIBRARY = "library"  # a library does it, where it is told to
    CUDA_ONLY = "CUDA only"
    OFF = "off"  # it says that it is not wanted


class FeatureUse(NamedTuple):
    """A place that shows a feature."""

    name: str  # what the name there means: torch.nn.parallel.DistributedDataParallel
    file: str
    line: int
    strength: Certainty = Certainty.SHOWN
    switch: str = ""  # --amp

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


def uses(
    modules: Mapping[str, PythonModule], feature: str, vendor: Vendor, options: Mapping[str, str]
) -> Iterator[FeatureUse]:
    """Every place that shows a feature; `options` are those that are off by default, by their attribute."""
    places = filter(None, (f"{vendor.torch_module}.amp", f"{vendor.plugin}.amp", vendor.amp_module))
    own = {f"{place}.{ending}" for place in places for ending in ("autocast", "autocast_mode.autocast")}
    wanted = {"distributed": _DISTRIBUTED, "amp": _AMP | own}.get(feature, set())
    apex = _APEX.get(feature, set())
    if vendor.has_apex:
        wanted, apex = wanted | apex, set()
    for file, module in modules.items():
        conditions = Conditions(module.tree)
        for name, node, place in _names(module):
            if name in apex:
                yield FeatureUse(name, file, node.lineno, Certainty.CUDA_ONLY)
            elif name in wanted:
                if not conditions.is_dead(node.lineno):
                    yield _judged(FeatureUse(name, file, node.lineno), node, place, conditions, options)
            elif name in _LIBRARIES or (feature == "amp" and name in _CONFIGURES):
                if not conditions.is_dead(node.lineno):
                    yield FeatureUse(name, file, node.lineno, _of_library(feature, _call(node, place)))


def one_process(modules: Mapping[str, PythonModule]) -> FeatureUse | None:
    """Where many devices are driven by one process only."""
    for file, module in modules.items():
        for name, node, _ in _names(module):
            if name in ONE_PROCESS:
                return FeatureUse(name, file, node.lineno)
    return None


def _names(module: PythonModule) -> list[tuple[str, ast.expr, WalkState]]:
    """Every name and attribute chain whose meaning imports tell, where it is used and not only compared with."""
    found: list[tuple[str, ast.expr, WalkState]] = []

    def visit(node: ast.AST, place: WalkState) -> None:
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            resolved = module.resolve(node, place.scope, place.shadowed)
            for above in place.upwards() if resolved is not None else ():
                function = above.func if isinstance(above, ast.Call) else None
                is_question = isinstance(function, ast.Name) and function.id in _ASKS_FOR_THE_TYPE
                if is_question or isinstance(above, _COMPARING):
                    return
            if resolved is not None:
                found.append((resolved.qualified, node, place))

    for unit in module.scopes.units:
        walk_all(unit, visit)
    return found


def _call(node: ast.expr, place: WalkState) -> ast.Call | None:
    """The call of which the name is the function."""
    return place.parent if isinstance(place.parent, ast.Call) and place.parent.func is node else None


def _judged(
    use: FeatureUse, node: ast.expr, place: WalkState, conditions: Conditions, options: Mapping[str, str]
) -> FeatureUse:
    tests = conditions.tests(node.lineno)
    below: ast.AST = node
    for above in place.upwards():
        if isinstance(above, ast.IfExp) and above.body is below:  # autocast() if args.amp else nullcontext()
            tests.append(above.test)
        below = above
    call = _call(node, place)
    enabled = [word.value for word in call.keywords if word.arg == "enabled"] if call else []
    if call and use.name.endswith("amp.autocast") and use.name != "torch.amp.autocast" and call.args:
        enabled.append(call.args[0])
    if any(conditions.value(test) is False for test in enabled):
        return use._replace(strength=Certainty.OFF)
    for test in (*enabled, *tests):
        named = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
        if named in options:
            return use._replace(strength=Certainty.SWITCHED, switch=options[named])
    return use


def _of_library(feature: str, call: ast.Call | None) -> Certainty:
    for word in call.keywords if call else ():
        if word.arg in _ARGUMENTS.get(feature, ()) and isinstance(word.value, ast.Constant):
            if word.value.value == "auto":  # that says nothing
                continue
            return Certainty.OFF if word.value.value in _NO else Certainty.SHOWN
    return Certainty.LIBRARY
