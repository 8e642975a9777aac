"""What a script does as one of several processes: set-up, clean-up, and a card of its own."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from torchferry.conversion.distributed.changes import (
    FileChanges,
    ProgramChanges,
    UnclearProgramError,
    import_anchor,
)
from torchferry.conversion.distributed.models import is_optimizer
from torchferry.conversion.distributed.training import Training
from torchferry.conversion.loaders import DATA_LOADERS
from torchferry.conversion.program.blocks import is_main_guard
from torchferry.conversion.program.functions import (
    ASSIGNMENTS,
    FUNCTIONS,
    FunctionNode,
    own_calls,
    own_nodes,
)
from torchferry.conversion.program.module import ProgramModule, called_method
from torchferry.conversion.program.slots import text_of
from torchferry.conversion.program.training_program import Origin, OriginFlow
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.source.names import called_name, last_name
from torchferry.source.scopes import Scope
from torchferry.text import Text

_PARSING = frozenset({"parse_args", "parse_known_args"})
_MOVES = frozenset({"cuda", "to", "backward"})
_LEADING = (ast.Import, ast.ImportFrom, *FUNCTIONS, ast.ClassDef, ast.Global, ast.Nonlocal, ast.Pass)
_DEPTH = 6

_SETUP = Text("Joins the process group", "加入进程组")
_CLEANUP = Text("Leaves the process group at the end", "结束时退出进程组")
_NO_WORK = Text(
    "nothing in this script, nor in what it calls, trains a model; name the script that does with --main",
    "该脚本及其调用的代码均不训练模型；请用 --main 指定训练脚本",
)
_SETUP_LINES = '''\
def setup_distributed():
    """Join the processes that torchrun started, one per card; started without it, this process is alone."""
    local_rank = int({os}.environ.get("LOCAL_RANK", "0"))
    has_card = {torch}.cuda.is_available()
    if has_card:
        {torch}.cuda.set_device(local_rank)
    backend = "nccl" if has_card else "gloo"
    if "LOCAL_RANK" in {os}.environ:
        {dist}.init_process_group(backend=backend)
    else:
        {dist}.init_process_group(backend=backend, store={dist}.HashStore(), rank=0, world_size=1)
    if {dist}.get_rank() != 0:  # the first process speaks for all
        {builtins}.print = lambda *args, **kwargs: None
        {sys}.stdout = open({os}.devnull, "w")
    return local_rank
'''


@dataclass(frozen=True)
class ScriptBody:
    """The statements in which the work is done."""

    file: ProgramModule
    scope: Scope
    statements: list[ast.stmt]
    function: FunctionNode | None = None  # whose body that is
    call: ast.Call | None = None  # that runs it


def find_entry(training: Training, main: ProgramModule) -> ScriptBody:
    """The body of the script, of `if __name__ == "__main__"`, or of the function that is called there."""
    root = main.module.scopes.root
    statements = main.module.tree.body
    guarded = next((node for node in statements if is_main_guard(node)), None)
    work = _WorkFinder(training)
    if guarded is not None and not any(
        work.is_work(main, node) for node in statements if node is not guarded
    ):
        assert isinstance(guarded, ast.If)
        statements = guarded.body
    entry = ScriptBody(main, root, statements)
    for _ in range(_DEPTH):
        inner = _called(training, work, entry)
        if inner is None:
            break
        entry = inner
    if not any(work.is_work(main, node) for node in entry.statements):
        raise UnclearProgramError(main, main.module.tree.body[0], _NO_WORK)
    return entry


class _WorkFinder:
    """Tells statements that train, move to a device or load data from those that prepare for it."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self._known: dict[int, bool] = {}

    def is_work(self, file: ProgramModule, node: ast.AST, depth: int = _DEPTH) -> bool:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and depth == _DEPTH:
            return False  # a definition as a statement
        if id(node) not in self._known:
            self._known[id(node)] = False
            self._known[id(node)] = any(self._is_work_call(file, call, depth) for call in own_calls(node))
        return self._known[id(node)]

    def _is_work_call(self, file: ProgramModule, call: ast.Call, depth: int) -> bool:
        if called_method(call) in _MOVES:
            return True
        if file.qualified(call.func) in DATA_LOADERS or is_optimizer(file, call):
            return True
        callee = self.training.flow.callee(file, call) if depth else None
        return callee is not None and self.is_work(callee.file, callee.node, depth - 1)


def _called(training: Training, work: _WorkFinder, entry: ScriptBody) -> ScriptBody | None:
    """The function that does all the work of a body, if one does, is called once, and stands in the same file."""
    working = [node for node in entry.statements if work.is_work(entry.file, node)]
    if len(working) != 1 or not isinstance(working[0], (ast.Expr, *ASSIGNMENTS, ast.Raise)):
        return _handed_over(training, work, entry) if not working else None
    for call in own_calls(working[0]):
        called = training.flow.function_called(entry.file, call)
        if called is None or called.file is not entry.file:
            continue
        scope = entry.file.scopes[called.node]
        is_method = scope.parent is not None and scope.parent.is_class
        if not is_method and len(training.flow.calls_of(called.node)) == 1:
            return ScriptBody(entry.file, scope, called.node.body, called.node, call)
    return None


def _handed_over(training: Training, work: _WorkFinder, entry: ScriptBody) -> ScriptBody | None:
    """`fire.Fire(main)`: a function that does the work is handed to a library."""
    for statement in entry.statements:
        for call in own_calls(statement):
            for argument in call.args:
                found = training.program.definition(entry.file, argument)
                if found and isinstance(found.node, FUNCTIONS) and found.file is entry.file:
                    if work.is_work(entry.file, found.node, _DEPTH - 1):
                        scope = entry.file.scopes[found.node]
                        return ScriptBody(entry.file, scope, found.node.body, found.node, call)
    return None


def set_up(training: Training, entry: ScriptBody, is_rank_used: bool, changes: ProgramChanges) -> str:
    """Put in the set-up; answers with the name of the variable that holds the local rank."""
    file = changes.of(entry.file)
    modules = {
        "os": "os",
        "torch": "torch",
        "dist": "torch.distributed",
        "builtins": "builtins",
        "sys": "sys",
    }
    names = {name: file.name_of(qualified, name) for name, qualified in modules.items()}
    lines = _SETUP_LINES.format(**names).splitlines()
    if any("logging" in other.module.scopes.modules for other in training.program.files.values()):
        logging = file.name_of("logging", "logging")
        lines.insert(-1, f"        {logging}.disable({logging}.WARNING)")
    file.add_helper([line.replace("    ", file.indent_unit) for line in lines])
    taken = {*entry.scope.bindings, *entry.file.module.scopes.root.bindings}
    variable = "local_rank" if "local_rank" not in taken else "process_local_rank"
    line = f"{variable} = setup_distributed()" if is_rank_used else "setup_distributed()"
    file.before(_first_statement(training, entry), [line], _SETUP)
    _clean_up(entry, file, names["dist"])
    return variable


def _first_statement(training: Training, entry: ScriptBody) -> ast.stmt:
    """Behind the parsing of arguments, and before whatever touches a device."""
    work = _WorkFinder(training)
    first_work = next(index for index, node in enumerate(entry.statements) if work.is_work(entry.file, node))
    for index in reversed(range(first_work)):
        if _parses(training, entry.file, entry.statements[index]):
            return entry.statements[index + 1]
    anchor = import_anchor(entry.file.module)
    begin = entry.statements.index(anchor) + 1 if anchor in entry.statements else 0
    leading = next(
        (index for index in range(begin, first_work) if not _is_leading(entry.statements[index])), first_work
    )
    return entry.statements[leading]


def _is_leading(node: ast.stmt) -> bool:
    """Imports, definitions, texts and plain settings, which nothing needs to precede."""
    if isinstance(node, _LEADING):
        return True
    if isinstance(node, ASSIGNMENTS):
        return node.value is None or not any(isinstance(child, ast.Call) for child in ast.walk(node.value))
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _parses(training: Training, file: ProgramModule, node: ast.AST) -> bool:
    for call in own_calls(node):
        callee = training.flow.callee(file, call)
        inner = ast.walk(callee.node) if callee is not None else ()
        if called_method(call) in _PARSING or any(
            isinstance(child, ast.Attribute) and child.attr in _PARSING for child in inner
        ):
            return True
    return False


def _clean_up(entry: ScriptBody, file: FileChanges, dist: str) -> None:
    line = f"{dist}.destroy_process_group()"
    if entry.function is not None and entry.call is not None:
        caller = entry.file.statement_of(entry.call)
        is_whole = isinstance(caller, (ast.Expr, *ASSIGNMENTS)) and caller.value is entry.call
        if is_whole and not entry.function.decorator_list:
            _put_last(entry.file.tree.position(caller).block, file, line)
            return
        for node in own_nodes(entry.function):
            if isinstance(node, ast.Return):
                file.before(node, [line], _CLEANUP)
    if not isinstance(entry.statements[-1], ast.Return):
        _put_last(entry.statements, file, line)


def _put_last(statements: list[ast.stmt], file: FileChanges, line: str) -> None:
    last = statements[-1]
    is_exit = isinstance(last, ast.Expr) and called_name(last.value) in ("exit", "_exit", "quit")
    if is_exit or isinstance(last, ast.Raise):
        file.before(last, [line], _CLEANUP)
    else:
        file.after(last, [line], _CLEANUP)


# Cards that a program names by number: each process has its own now, and plain `cuda` means that one.

_INDEXED = re.compile(r"cuda:(\d+)\Z")
_BEGUN = re.compile(r"cuda:(?:\{\w*\}|%[ds])?\Z")
_A_NUMBER = re.compile(r"(?i)gpu|cuda_?id|device_?id|rank|card")
_VISIBLE = "CUDA_VISIBLE_DEVICES"

_OWN_CARD = Text("Each process uses the card of its LOCAL_RANK", "每个进程使用其 LOCAL_RANK 对应的卡")
_VISIBLE_GONE = Message(
    Text("Choice of cards removed", "去掉卡的选择"),
    why=Text(
        "It would hide the other cards from the processes; the launch script says which are used.",
        "它会使其他进程看不到各自的卡；由启动脚本指定使用的卡。",
    ),
)
_VISIBLE_LIST = Message(
    Text("List of cards that the processes may use", "进程可用的卡列表"),
    do=Text("Start as many processes as it names.", "启动的进程数应与之相同。"),
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


def take_own_card(flow: OriginFlow, changes: ProgramChanges) -> None:
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
        self, file: ProgramModule, flow: OriginFlow, changes: ProgramChanges, numbers: dict[int, Origin]
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
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            if text_of(node.targets[0].slice) == _VISIBLE:
                if "," in text_of(node.value):
                    self.changes.remark(Kind.INFO, node, _VISIBLE_LIST)
                else:
                    self.changes.delete(node, _VISIBLE_GONE)
                return True
        if isinstance(node, (ast.JoinedStr, ast.BinOp, ast.Call)) and self._is_composed(node):
            self._put(node, '"cuda"')
            return True
        if isinstance(node, ast.Call):
            self._look_at_call(node)
        elif isinstance(node, ast.Constant):
            self._look_at_text(node)
        return False

    def _put(self, node: ast.AST, text: str) -> None:
        self.changes.replace(node, _OWN_CARD, self.module.replacement(node, text))

    def _note(self, node: ast.expr, number: int) -> None:
        self.numbers.setdefault(number, Origin(self.file, node))

    def _look_at_text(self, node: ast.Constant) -> None:
        text = text_of(node)
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
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            first = node.func.value if node.func.attr == "format" else None
        return bool(_BEGUN.match(text_of(first)))

    def _look_at_call(self, call: ast.Call) -> None:
        name = self.file.qualified(call.func)
        if name == "torch.cuda.set_device" and call.args:
            if isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, int):
                self._note(call, call.args[0].value)
            os = self.changes.name_of("os", "os")
            self._put(call.args[0], f'int({os}.environ.get("LOCAL_RANK", "0"))')
        elif name == "torch.device" and call.args:
            if self._takes_number(call, call.args[-1]):
                self._put_or_drop(call, call.args[-1], is_needed=len(call.args) == 1)
        elif called_method(call) in ("cuda", "to") and call.args:
            first = call.args[0]
            if self._takes_number(call, first):
                self._put_or_drop(call, first, is_needed=called_method(call) == "to")
            elif called_method(call) == "cuda" and isinstance(
                first, (ast.Name, ast.Attribute, ast.Subscript)
            ):
                if "device" not in self.module.segment(first):
                    self.changes.remark(Kind.TODO, call, _UNSURE)
        for keyword in call.keywords if name.startswith("torch.") else ():
            if keyword.arg == "device" and (_is_number(keyword.value) or self._holds_a_number(keyword.value)):
                self._put(keyword.value, '"cuda"')

    def _takes_number(self, call: ast.Call, argument: ast.expr) -> bool:
        """Whether an argument is the number of a card; one that is written out is noted."""
        if _is_number(argument):
            self._note(call, argument.value)  # type: ignore[attr-defined]
            return True
        return self._holds_a_number(argument)

    def _holds_a_number(self, node: ast.expr) -> bool:
        """Whether a variable holds the number of a card: by what it is given, else by its name."""
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            return False
        made = self.flow.origins(self.file, node)
        numbers = [origin for origin in made if _is_number(origin.node)]
        for origin in numbers:
            self.numbers.setdefault(origin.node.value, origin)  # type: ignore[attr-defined]
        return bool(numbers) or (not made and bool(_A_NUMBER.search(last_name(node))))

    def _put_or_drop(self, call: ast.Call, argument: ast.expr, is_needed: bool) -> None:
        if is_needed:
            self._put(argument, '"cuda"')
            return
        others = [*call.args, *call.keywords]
        place = others.index(argument)
        start, end = self.module.start(argument), self.module.end(argument)
        if place + 1 < len(others):
            end = self.module.start(others[place + 1])
        elif place:
            start = self.module.end(others[place - 1])
        self.changes.replace(call, _OWN_CARD, Edit(start, end, ""))


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int
