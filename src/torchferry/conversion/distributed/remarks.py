"""What changes in meaning when a program runs on several cards, said where it is seen."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from torchferry.conversion.common_edits import add_argument
from torchferry.conversion.distributed.changes import ProgramChanges
from torchferry.conversion.distributed.loader_uses import Loaders
from torchferry.conversion.distributed.training import Training
from torchferry.conversion.program.functions import ASSIGNMENTS, FUNCTIONS, assigned_to, own_nodes
from torchferry.conversion.program.module import ProgramModule
from torchferry.conversion.program.training_program import CallSite
from torchferry.finding import Kind, Message
from torchferry.source.names import called_name, last_name
from torchferry.text import Text

_LOCAL = Message(
    Text("Figures of one process's share of the data", "仅针对本进程数据的指标"),
    why=Text(
        "Loss and accuracy of this loop are of this process alone.", "该循环中的 loss 与准确率仅属于本进程。"
    ),
    do=Text(
        "For figures of the whole epoch, average them with `torch.distributed.all_reduce`.",
        "如需整轮指标，请用 `torch.distributed.all_reduce` 取平均。",
    ),
)
_DIVIDED = Message(
    Text("Sum of one share divided by the size of all data", "部分数据之和除以全部数据的数量"),
    why=Text("On N cards the figure is about 1/N of what it was.", "在 N 张卡上该指标约为原来的 1/N。"),
    do=Text(
        "Add the sums with `torch.distributed.all_reduce` first.",
        "请先用 `torch.distributed.all_reduce` 求和。",
    ),
)
_ACCUMULATED = Message(
    Text("Gradients accumulated over several backward passes", "多次反向传播累积梯度"),
    why=Text(
        "The result is correct; `model.no_sync()` around all but the last pass saves communication.",
        "结果正确；除最后一次外使用 `model.no_sync()` 可减少通信。",
    ),
)
_SEED = Message(
    Text("Same random numbers on all processes", "所有进程生成相同的随机数"),
    why=Text("Dropout masks and noise are the same on every process.", "各进程的 dropout 与噪声相同。"),
    do=Text(
        "If they are to differ, seed with `SEED + rank` after the model is built and the data is split.",
        "如需不同，请在构建模型与划分数据之后以 `SEED + rank` 设定种子。",
    ),
)
_SPLIT = Message(
    Text("Seed added to the split of the data", "为数据划分设定种子"),
    why=Text(
        "Without it every process would have its own split and train on what others evaluate.",
        "否则各进程划分不同，会用到其他进程的评估数据训练。",
    ),
)
_DRAWN = Message(
    Text("Random draw without a seed", "未设种子的随机抽取"),
    why=Text(
        "Every process draws something else, so a split of the data differs among them.",
        "各进程结果不同，由此划分的数据也不同。",
    ),
    do=Text("Set the same seed on all processes before it.", "请在此之前为所有进程设定相同的种子。"),
)
_SEEDS = frozenset({"torch.manual_seed", "torch.random.manual_seed"})
_OTHER_SEEDS = frozenset({"random.seed", "numpy.random.seed"})
# What splits of data are made of.
_DRAWS = frozenset(
    {"random.shuffle", "random.sample", "numpy.random.shuffle", "numpy.random.permutation", "torch.randperm"}
    | {"sklearn.model_selection.train_test_split"}
)
_TOGGLED = Message(
    Text("Gradients of a wrapped model switched off and on", "切换被包装模型的梯度"),
    why=Text(
        "DistributedDataParallel waits for gradients that never come.",
        "DistributedDataParallel 会等待不会产生的梯度。",
    ),
    do=Text("Call `MODEL.module(...)` where they are off.", "关闭梯度期间请调用 `MODEL.module(...)`。"),
)
_PENALTY = Message(
    Text("`torch.autograd.grad` on a wrapped model", "对被包装的模型使用 `torch.autograd.grad`"),
    why=Text("DistributedDataParallel does not support it.", "DistributedDataParallel 不支持。"),
    do=Text("Compute the penalty with `MODEL.module(...)`.", "请用 `MODEL.module(...)` 计算惩罚项。"),
)


_COUNT = Message(
    Text("Number of all cards of the node", "节点上所有卡的数量"),
    why=Text("This process uses one of them.", "本进程只使用一张。"),
    do=Text(
        "Where batch sizes, workers or learning rates are multiplied by it, write 1.",
        "若用于放大批量、worker 数或学习率，请改为 1。",
    ),
)
_PLATEAU = Message(
    Text("Figure that decides the learning rate", "决定学习率的指标"),
    why=Text(
        "A training loss differs on every process, so their learning rates would differ; the figure of an "
        "evaluation is the same.",
        "各进程的训练 loss 不同，学习率会不一致；评估指标相同。",
    ),
    do=Text("Pass the same figure on every process.", "请在各进程传入相同的指标。"),
)
_OUTPUT = Message(
    Text("Output of every process", "每个进程的输出"),
    why=Text(
        "Only `print`, `logging` and stdout are silenced in all but the first process.",
        "除第一个进程外，仅 `print`、`logging` 与 stdout 被屏蔽。",
    ),
)


def remark(training: Training, changes: ProgramChanges) -> None:
    """Look at the loops that train, and at what is random."""
    for iteration in training.iterations:
        if iteration.trains and isinstance(iteration.loop, (ast.For, ast.AsyncFor)):
            noted = changes.of(iteration.file)
            noted.remark(Kind.INFO, iteration.loop.iter, _LOCAL)
            nodes = list(ast.walk(iteration.loop))
            # `if (i + 1) % n == 0: optimizer.step()`
            tests = [
                node
                for node in nodes
                if isinstance(node, ast.If) and any(isinstance(item, ast.Mod) for item in ast.walk(node.test))
            ]
            if any(called_name(item) == "step" for test in tests for item in ast.walk(test)):
                noted.remark(Kind.INFO, iteration.loop.iter, _ACCUMULATED)
            for node in nodes:
                is_set = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
                if called_name(node) == "requires_grad_" or (is_set and last_name(node) == "requires_grad"):
                    noted.remark(Kind.TODO, node, _TOGGLED)
    seeds = any(_always_seeds(file, call) for file, call in training.program.calls)
    for file, call in training.program.calls:
        name, noted = file.qualified(call.func), changes.of(file)
        if name in _SEEDS:
            noted.remark(Kind.INFO, call, _SEED)
        elif name.startswith("torch.utils.data.") and name.endswith("random_split") and not seeds:
            if len(call.args) < 3 and not any(item.arg in ("generator", None) for item in call.keywords):
                text = f"generator={noted.name_of('torch', 'torch')}.Generator().manual_seed(0)"
                noted.replace(call, _SPLIT, add_argument(file.module, call, text))
        elif name in _DRAWS and not seeds and not _is_repeated(training, file, call):
            if not any(keyword.arg == "random_state" for keyword in call.keywords):
                noted.remark(Kind.TODO, call, _DRAWN)
        elif called_name(call) == "len" and len(call.args) == 1 and isinstance(call.args[0], ast.Attribute):
            parent = file.parent(call)
            if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div) and parent.right is call:
                if call.args[0].attr == "dataset":  # x / len(loader.dataset)
                    noted.remark(Kind.RISK, parent, _DIVIDED)
        elif name == "torch.autograd.grad":
            noted.remark(Kind.TODO, call, _PENALTY)
        elif name == "torch.cuda.device_count":
            is_question = isinstance(file.parent(call), ast.Compare)
            noted.remark(Kind.INFO if is_question else Kind.TODO, call, _COUNT)
        elif called_name(call) == "ReduceLROnPlateau":
            noted.remark(Kind.RISK, call, _PLATEAU)
        elif name == "sys.stderr.write":
            noted.remark(Kind.TODO, call, _OUTPUT)


def _always_seeds(file: ProgramModule, call: ast.Call) -> bool:
    """Sets a seed, and not only if an option is given."""
    if file.qualified(call.func) not in _SEEDS | _OTHER_SEEDS:
        return False
    tests = [owner.test for owner in file.owners(call) if isinstance(owner, ast.If)]
    return all("__name__" in file.module.segment(test) for test in tests)


def _is_repeated(training: Training, file: ProgramModule, call: ast.Call) -> bool:
    """In a loop that trains, or in a method of a dataset: no split."""
    return any(
        isinstance(owner, ast.ClassDef)
        or (isinstance(owner, (*FUNCTIONS, ast.For, ast.While)) and training.trains(file, owner))
        for owner in file.owners(call)
    )


# Decisions that hang on one process's share of the data: processes that decide differently wait for ever.

_ALONE = Message(
    Text("Decision by a figure of one process", "根据单个进程的指标作出决定"),
    why=Text(
        "Where processes decide differently, the others wait endlessly.",
        "若各进程决定不同，其他进程会一直等待。",
    ),
    do=Text(
        "Average the figure first: `torch.distributed.all_reduce(figure); figure /= "
        "torch.distributed.get_world_size()`.",
        "请先取平均：`torch.distributed.all_reduce(figure); figure /= torch.distributed.get_world_size()`。",
    ),
)
_JUMPS = (ast.Break, ast.Continue, ast.Return)  # an error in one process ends them all
_ROUNDS = 4

RunsModel = Callable[[ProgramModule, ast.Call], bool]


def point_out_decisions(
    training: Training, loaders: Loaders, runs_model: RunsModel, changes: ProgramChanges
) -> None:
    """Point out tests of figures that differ among the processes, if they lead out of a loop or to the model."""
    for file in training.program.files.values():
        functions = (item for item in ast.walk(file.module.tree) if isinstance(item, FUNCTIONS))
        for scope in (file.module.tree, *functions):
            local = _Local(training, loaders, file, scope)
            for test in local.decisions(runs_model) if local.names else ():
                changes.of(file).remark(Kind.TODO, test, _ALONE)


class _Local:
    """The names of a function, or of the script, that hold figures of this process alone."""

    def __init__(self, training: Training, loaders: Loaders, file: ProgramModule, scope: ast.AST) -> None:
        self.training = training
        self.loaders = [loader for loader in loaders.training if id(loader.node) not in loaders.tests]
        self.file = file
        self.nodes = list(own_nodes(scope))
        self.names = self._begun()
        for _ in range(_ROUNDS if self.names else 0):
            before = len(self.names)
            for node in self.nodes:
                self._follow(node)
            if len(self.names) == before:
                break

    def _begun(self) -> set[str]:
        """The loss that backward is called on, and what functions answer that train or use training data."""
        found: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Call) and called_name(node) == "backward":
                value = node.func.value if isinstance(node.func, ast.Attribute) else node.func
                if isinstance(value, ast.Name):
                    found.add(value.id)
            if isinstance(node, ASSIGNMENTS) and node.value is not None:
                calls = [child for child in ast.walk(node.value) if isinstance(child, ast.Call)]
                found |= self._given(node) if any(map(self._is_share, calls)) else set()
        return found

    def _is_share(self, call: ast.Call) -> bool:
        called = self.training.flow.function_called(self.file, call)
        if called is None or called.node.name == "__init__":
            return False
        site = CallSite(self.file, call)
        is_given = any(self.training.argument_from(site, loader) is not None for loader in self.loaders)
        if is_given or self.training.takes_loader(site) or not self.training.trains(called.file, called.node):
            return is_given
        # A function that trains and evaluates (`model.eval()`) may answer with either figure.
        return all(called_name(node) != "eval" for node in ast.walk(called.node))

    def _given(self, node: ast.AST) -> set[str]:
        nodes = [child for target in assigned_to(node) for child in ast.walk(target)]
        return {
            self.file.module.segment(child) for child in nodes if isinstance(child, (ast.Name, ast.Attribute))
        } - {"self"}

    def _mentions(self, node: ast.AST) -> bool:
        return any(
            isinstance(child, (ast.Name, ast.Attribute)) and self.file.module.segment(child) in self.names
            for child in ast.walk(node)
        )

    def _follow(self, node: ast.AST) -> None:
        if isinstance(node, ASSIGNMENTS) and node.value is not None and self._mentions(node.value):
            self.names |= self._given(node)
        elif isinstance(node, ast.AugAssign) and self._mentions(node.value):
            self.names.add(self.file.module.segment(node.target))
        elif isinstance(node, ast.If) and self._mentions(node.test):
            for child in own_nodes(node):
                if isinstance(child, ast.AugAssign):
                    self.names.add(self.file.module.segment(child.target))
                elif assigned_to(child):
                    texts = [self.file.module.segment(item) for item in ast.walk(node) if assigned_to(item)]
                    if texts.count(self.file.module.segment(child)) == 1:  # else both branches make it alike
                        self.names |= self._given(child)

    def decisions(self, runs_model: RunsModel) -> Iterator[ast.expr]:
        for node in self.nodes:
            if isinstance(node, ast.Call) and called_name(node) == "step":
                if any(map(self._mentions, node.args)):
                    yield node.args[0]  # of ReduceLROnPlateau
            if not isinstance(node, (ast.If, ast.While)) or not self._mentions(node.test):
                continue
            in_loop = isinstance(node, ast.While) or any(self.file.loops_around(node))
            # An inner `if` with such a test is the one to point out.
            inner = [
                item for item in own_nodes(node) if isinstance(item, ast.If) and self._mentions(item.test)
            ]
            below = {id(item) for other in inner for item in ast.walk(other)}
            leading = [
                child
                for child in own_nodes(node)
                if isinstance(child, (*_JUMPS, ast.Call)) and id(child) not in below
            ]
            if isinstance(node, ast.While) or (
                in_loop
                and any(not isinstance(child, ast.Call) or runs_model(self.file, child) for child in leading)
            ):
                yield node.test
