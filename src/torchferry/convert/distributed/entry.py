"""Where the real work of a script begins and ends: the places for set-up and clean-up of the process group."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from torchferry.convert.distributed.changes import Changes, FileChanges, UnclearProgramError, import_anchor
from torchferry.convert.distributed.models import is_optimizer
from torchferry.convert.distributed.training import Training
from torchferry.convert.loaders import DATA_LOADERS
from torchferry.convert.program.training_program import (
    ASSIGNMENTS,
    FUNCTIONS,
    Function,
    ProgramFile,
    own_nodes,
)
from torchferry.source.names import called_name
from torchferry.source.scopes import Scope
from torchferry.text import Text

_PARSING = frozenset({"parse_args", "parse_known_args"})
_MOVES = frozenset({"cuda", "to", "backward"})
_LEADING = (ast.Import, ast.ImportFrom, *FUNCTIONS, ast.ClassDef, ast.Global, ast.Nonlocal, ast.Pass)
_DEPTH = 6

_SETUP = Text("joins the process group before the real work begins", "在实际工作开始前加入进程组")
_CLEANUP = Text("leaves the process group at the end", "结束时退出进程组")
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
class Entry:
    """The statements in which the work is done."""

    file: ProgramFile
    scope: Scope
    statements: list[ast.stmt]
    function: Function | None = None  # whose body that is
    call: ast.Call | None = None  # that runs it


def find_entry(training: Training, main: ProgramFile) -> Entry:
    """The body of the script, of `if __name__ == "__main__"`, or of the function that is called there."""
    root = main.module.scopes.root
    statements = main.module.tree.body
    guarded = next((node for node in statements if _asks_for_main(node)), None)
    work = _Work(training)
    if guarded is not None and not any(
        work.is_work(main, node) for node in statements if node is not guarded
    ):
        assert isinstance(guarded, ast.If)
        statements = guarded.body
    entry = Entry(main, root, statements)
    for _ in range(_DEPTH):
        inner = _called(training, work, entry)
        if inner is None:
            break
        entry = inner
    if not any(work.is_work(main, node) for node in entry.statements):
        raise UnclearProgramError(main, main.module.tree.body[0], _NO_WORK)
    return entry


def _asks_for_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and any(
        isinstance(item, ast.Name) and item.id == "__name__" for item in ast.walk(node.test)
    )


class _Work:
    """Tells statements that train, move to a device or load data from those that prepare for it."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self._known: dict[int, bool] = {}

    def is_work(self, file: ProgramFile, node: ast.AST, depth: int = _DEPTH) -> bool:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and depth == _DEPTH:
            return False  # a definition as a statement
        if id(node) not in self._known:
            self._known[id(node)] = False
            self._known[id(node)] = any(
                self._is_work_call(file, child, depth)
                for child in own_nodes(node)
                if isinstance(child, ast.Call)
            )
        return self._known[id(node)]

    def _is_work_call(self, file: ProgramFile, call: ast.Call, depth: int) -> bool:
        if isinstance(call.func, ast.Attribute) and call.func.attr in _MOVES:
            return True
        if file.qualified(call.func) in DATA_LOADERS or is_optimizer(file, call):
            return True
        callee = self.training.flow.callee(file, call) if depth else None
        return callee is not None and self.is_work(callee.file, callee.node, depth - 1)


def _called(training: Training, work: _Work, entry: Entry) -> Entry | None:
    """The function that does all the work of a body, if one does, is called once, and stands in the same file."""
    working = [node for node in entry.statements if work.is_work(entry.file, node)]
    if len(working) != 1 or not isinstance(working[0], (ast.Expr, *ASSIGNMENTS, ast.Raise)):
        return _handed_over(training, work, entry) if not working else None
    calls = [node for node in own_nodes(working[0]) if isinstance(node, ast.Call)]
    for call in calls:
        callee = training.flow.callee(entry.file, call)
        if callee is None or callee.file is not entry.file or not isinstance(callee.node, FUNCTIONS):
            continue
        scope = entry.file.scopes[id(callee.node)]
        is_method = scope.parent is not None and scope.parent.is_class
        if not is_method and len(training.flow.sites.get(id(callee.node), ())) == 1:
            return Entry(entry.file, scope, callee.node.body, callee.node, call)
    return None


def _handed_over(training: Training, work: _Work, entry: Entry) -> Entry | None:
    """`fire.Fire(main)`: a function that does the work is handed to a library."""
    for statement in entry.statements:
        for call in own_nodes(statement):
            for argument in call.args if isinstance(call, ast.Call) else ():
                found = training.program.definition(entry.file, argument)
                if found and isinstance(found.node, FUNCTIONS) and found.file is entry.file:
                    if work.is_work(entry.file, found.node, _DEPTH - 1):
                        scope = entry.file.scopes[id(found.node)]
                        return Entry(entry.file, scope, found.node.body, found.node, call)  # type: ignore[arg-type]
    return None


def set_up(training: Training, entry: Entry, is_rank_used: bool, changes: Changes) -> str:
    """Put in the set-up; answers with the name of the variable that holds the local rank."""
    file = changes.of(entry.file)
    names = {
        name: file.name_of(qualified, name)
        for name, qualified in (
            ("os", "os"),
            ("torch", "torch"),
            ("dist", "torch.distributed"),
            ("builtins", "builtins"),
            ("sys", "sys"),
        )
    }
    file.add_helper([line.replace("    ", file.indent_unit) for line in _setup_lines(training, file, names)])
    taken = {*entry.scope.bindings, *entry.file.module.scopes.root.bindings}
    variable = "local_rank" if "local_rank" not in taken else "process_local_rank"
    file.before(
        _first_statement(training, entry),
        [f"{variable} = setup_distributed()" if is_rank_used else "setup_distributed()"],
        _SETUP,
    )
    _clean_up(entry, file, names["dist"])
    return variable


def _setup_lines(training: Training, file: FileChanges, names: dict[str, str]) -> list[str]:
    lines = _SETUP_LINES.format(**names).splitlines()
    if any("logging" in other.module.scopes.modules for other in training.program.files.values()):
        logging = file.name_of("logging", "logging")
        lines.insert(-1, f"        {logging}.disable({logging}.WARNING)")
    return lines


def _first_statement(training: Training, entry: Entry) -> ast.stmt:
    """Behind the parsing of arguments, and before whatever touches a device."""
    work = _Work(training)
    first_work = next(index for index, node in enumerate(entry.statements) if work.is_work(entry.file, node))
    parsed = [
        index
        for index, node in enumerate(entry.statements[:first_work])
        if _parses(training, entry.file, node)
    ]
    if parsed:
        return entry.statements[parsed[-1] + 1]
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


def _parses(training: Training, file: ProgramFile, node: ast.AST) -> bool:
    for call in own_nodes(node):
        if not isinstance(call, ast.Call):
            continue
        if isinstance(call.func, ast.Attribute) and call.func.attr in _PARSING:
            return True
        callee = training.flow.callee(file, call)
        if callee is not None and any(
            isinstance(child, ast.Attribute) and child.attr in _PARSING for child in ast.walk(callee.node)
        ):
            return True
    return False


def _clean_up(entry: Entry, file: FileChanges, dist: str) -> None:
    line = f"{dist}.destroy_process_group()"
    if entry.function is not None and entry.call is not None:
        standing = entry.file.standing(entry.call)
        caller = standing.statement if standing else None
        is_whole = isinstance(caller, (ast.Expr, *ASSIGNMENTS)) and caller.value is entry.call
        if caller is not None and is_whole and not entry.function.decorator_list:
            _put_last(entry.file.blocks[id(caller)].statements, file, line)
            return
        for node in own_nodes(entry.function):
            if isinstance(node, ast.Return):
                file.before(node, [line], _CLEANUP)
    if not isinstance(entry.statements[-1], ast.Return):
        _put_last(entry.statements, file, line)


def _put_last(statements: list[ast.stmt], file: FileChanges, line: str) -> None:
    if _leaves(statements[-1]):
        file.before(statements[-1], [line], _CLEANUP)
    else:
        file.after(statements[-1], [line], _CLEANUP)


def _leaves(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return called_name(node.value) in ("exit", "_exit", "quit")
    return isinstance(node, ast.Raise)
