"""Cards that a program names by number: each process has its own now, and plain `cuda` means that one."""

from __future__ import annotations

import ast
import re

from torchferry.convert.distributed.changes import Changes, UnclearProgramError
from torchferry.convert.program.origins import Origin, OriginFlow
from torchferry.convert.program.training_program import ProgramFile
from torchferry.finding import Kind
from torchferry.source.edits import Edit
from torchferry.text import Text

_INDEXED = re.compile(r"cuda:(\d+)\Z")
_BEGUN = re.compile(r"cuda:(?:\{\w*\}|%[ds])?\Z")
_A_NUMBER = re.compile(r"(?i)gpu|cuda_?id|device_?id|rank|card")
_VISIBLE = "CUDA_VISIBLE_DEVICES"

_OWN_CARD = Text(
    "each process uses the card of its LOCAL_RANK, which plain `cuda` stands for now",
    "每个进程使用其 LOCAL_RANK 对应的卡，cuda 即指该卡",
)
_VISIBLE_GONE = Text(
    "would hide the other cards from the processes that are to use them; the launch script says which are used",
    "会使其他进程看不到各自的卡；由启动脚本指定使用的卡",
)
_VISIBLE_LIST = Text(
    "lists the cards that the processes may use: start as many processes as it names",
    "列出了可用的卡：启动的进程数应与之相同",
)
_SEVERAL = Text(
    "the program uses several cards in one process (cuda:{indexes}), as model parallelism does; that can't be "
    "made one process per card",
    "程序在一个进程中使用多张卡（cuda:{indexes}），如模型并行；无法改为每卡一个进程",
)
_UNSURE = Text(
    "is this the number of a card? Each process must use the card of its LOCAL_RANK: leave the argument out",
    "这是卡号吗？每个进程必须使用其 LOCAL_RANK 对应的卡：请去掉该参数",
)


def take_own_card(flow: OriginFlow, changes: Changes) -> None:
    """Take the numbers of cards out of a program."""
    numbers: dict[int, Origin] = {}
    for file in flow.program.files.values():
        if any(word in file.module.data for word in (b"cuda", b"CUDA", b".to(", b"device=")):
            _Indexes(file, flow, changes, numbers).take_out()
    if len(numbers) > 1:
        file, node = numbers[max(numbers)]
        raise UnclearProgramError(
            file, node, _SEVERAL.format(indexes=", cuda:".join(map(str, sorted(numbers))))
        )


class _Indexes:
    """The numbers of cards in one file."""

    def __init__(
        self, file: ProgramFile, flow: OriginFlow, changes: Changes, numbers: dict[int, Origin]
    ) -> None:
        self.file = file
        self.module = file.module
        self.flow = flow
        self.changes = changes.of(file)
        self.numbers = numbers

    def take_out(self) -> None:
        done: set[int] = set()
        for unit in self.module.scopes.units:
            for node in ast.walk(unit.node):
                if id(node) not in done and self._look_at(node):
                    done.update(map(id, ast.walk(node)))

    def _look_at(self, node: ast.AST) -> bool:
        """Whether a node was dealt with, and what is in it need not be looked at."""
        if isinstance(node, ast.Assign) and self._sets_visible_devices(node):
            self._drop_visible_devices(node)
            return True
        if isinstance(node, (ast.JoinedStr, ast.BinOp, ast.Call)) and self._is_composed(node):
            self._put(node, '"cuda"')
            return True
        if isinstance(node, ast.Call):
            self._look_at_call(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._look_at_text(node, node.value)
        return False

    def _put(self, node: ast.AST, text: str) -> None:
        self.changes.replace(node, _OWN_CARD, Edit(self.module.start(node), self.module.end(node), text))

    def _note(self, node: ast.expr, number: int) -> None:
        self.numbers.setdefault(number, Origin(self.file, node))

    def _look_at_text(self, node: ast.Constant, text: str) -> None:
        match = _INDEXED.match(text)
        parent = self.file.parent(node)
        if match is None or isinstance(parent, (ast.JoinedStr, ast.Expr)):
            return
        if isinstance(parent, ast.Dict) and node in parent.keys:
            return  # where a checkpoint's tensors were
        self._note(node, int(match.group(1)))
        segment = self.module.segment(node)
        if segment.count(text) == 1:
            start = self.module.start(node) + len(segment[: segment.index(text)].encode()) + len("cuda")
            end = start + len(match.group(1)) + 1
            self.changes.replace(node, _OWN_CARD, Edit(start, end, ""))

    def _is_composed(self, node: ast.JoinedStr | ast.BinOp | ast.Call) -> bool:
        """f"cuda:{n}", "cuda:" + str(n), "cuda:%d" % n, "cuda:{}".format(n)."""
        first: ast.AST | None = None
        if isinstance(node, ast.JoinedStr) and len(node.values) == 2:
            first = node.values[0]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
            first = node.left
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format"
        ):
            first = node.func.value
        return (
            isinstance(first, ast.Constant)
            and isinstance(first.value, str)
            and bool(_BEGUN.match(first.value))
        )

    def _look_at_call(self, call: ast.Call) -> None:
        name = self.file.qualified(call.func)
        if name == "torch.cuda.set_device" and call.args:
            if isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, int):
                self._note(call, call.args[0].value)
            os = self.changes.name_of("os", "os")
            self._put(call.args[0], f'int({os}.environ.get("LOCAL_RANK", "0"))')
        elif name == "torch.device" and call.args:
            self._look_at_device(call)
        elif isinstance(call.func, ast.Attribute) and call.func.attr in ("cuda", "to") and call.args:
            self._look_at_move(call, call.func.attr)
        for keyword in call.keywords if name.startswith("torch.") else ():
            if keyword.arg == "device" and (_is_number(keyword.value) or self._holds_a_number(keyword.value)):
                self._put(keyword.value, '"cuda"')

    def _look_at_device(self, call: ast.Call) -> None:
        number = call.args[-1]
        if _is_number(number):
            self._note(call, number.value)  # type: ignore[attr-defined]
        elif not self._holds_a_number(number):
            return
        if len(call.args) == 1:
            self._put(number, '"cuda"')
        else:
            self._drop_argument(call, number)

    def _look_at_move(self, call: ast.Call, name: str) -> None:
        first = call.args[0]
        is_number = _is_number(first)
        if is_number:
            self._note(call, first.value)  # type: ignore[attr-defined]
        if name == "to" and (is_number or self._holds_a_number(first)):
            self._put(first, '"cuda"')
        elif name == "cuda" and (is_number or self._holds_a_number(first)):
            self._drop_argument(call, first)
        elif name == "cuda" and isinstance(first, (ast.Name, ast.Attribute, ast.Subscript)):
            if "device" not in self.module.segment(first):
                self.changes.remark(Kind.TODO, call, _UNSURE)

    def _holds_a_number(self, node: ast.expr) -> bool:
        """Whether a variable holds the number of a card: by what it is given, else by its name."""
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            return False
        made = self.flow.origins(self.file, node)
        numbers = [origin for origin in made if _is_number(origin.node)]
        for origin in numbers:
            self.numbers.setdefault(origin.node.value, origin)  # type: ignore[attr-defined]
        return bool(numbers) or (not made and _names_a_number(node))

    def _drop_argument(self, call: ast.Call, argument: ast.expr) -> None:
        others = [*call.args, *(keyword for keyword in call.keywords)]
        place = others.index(argument)
        start, end = self.module.start(argument), self.module.end(argument)
        if place + 1 < len(others):
            end = self.module.start(others[place + 1])
        elif place:
            start = self.module.end(others[place - 1])
        self.changes.replace(call, _OWN_CARD, Edit(start, end, ""))

    def _sets_visible_devices(self, node: ast.Assign) -> bool:
        target = node.targets[0]
        return (
            isinstance(target, ast.Subscript)
            and isinstance(target.slice, ast.Constant)
            and target.slice.value == _VISIBLE
        )

    def _drop_visible_devices(self, node: ast.Assign) -> None:
        value = node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and "," in value.value:
            self.changes.remark(Kind.INFO, node, _VISIBLE_LIST)
            return
        self.changes.delete(node, _VISIBLE_GONE)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _names_a_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        return bool(_A_NUMBER.search(node.id))
    return isinstance(node, ast.Attribute) and bool(_A_NUMBER.search(node.attr))
