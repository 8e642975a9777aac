"""What only the first process does: saving, writing logs, drawing progress bars."""

from __future__ import annotations

import ast

from torchferry.conversion.common_edits import add_argument
from torchferry.conversion.distributed.changes import FileChanges, ProgramChanges
from torchferry.conversion.distributed.models import Holder
from torchferry.conversion.distributed.training import Training
from torchferry.conversion.program.functions import ASSIGNMENTS, FUNCTIONS, FunctionNode, own_calls, own_nodes
from torchferry.conversion.program.module import ProgramModule, called_method
from torchferry.conversion.program.slots import text_of
from torchferry.conversion.program.training_program import Origin
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.source.names import called_name
from torchferry.text import Text

_WRITES = frozenset(
    {"torch.save", "torchvision.utils.save_image", "numpy.save", "numpy.savez", "numpy.savetxt"}
    | {"matplotlib.pyplot.savefig"}
)
# These may also be about files that every process has for itself.
_FILE_OPERATIONS = frozenset(
    {"shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.move", "shutil.rmtree"}
    | {"os.remove", "os.unlink", "os.rename", "os.replace", "os.symlink", "os.link"}
)
_WRITING_METHODS = frozenset({"save_pretrained", "savefig"})
_WRITERS = frozenset(
    {"torch.utils.tensorboard.SummaryWriter", "torch.utils.tensorboard.writer.SummaryWriter"}
    | {"tensorboardX.SummaryWriter"}
)
_BARS = frozenset({"tqdm", "trange"})

_SAVED_ONCE = Text("Only the first process writes", "仅第一个进程写入")
_BAR_ONCE = Text("Only the first process shows its progress", "仅第一个进程显示进度")
_RACE = Text("Folder made by whichever process is first", "该目录由先到的进程创建")
_RUN_ONCE = Text("Only the first process reports a run", "仅第一个进程上报")
_WHERE = Message(
    Text("Every process writes here", "每个进程都会在此写入"),
    do=Text("Put it under `if {test}:`.", "请放在 `if {test}:` 之下。"),
)
_FILE = Message(
    Text("Every process opens this file for writing", "每个进程都会打开该文件写入"),
    do=Text("Put what writes it under `if {test}:`.", "请将写入代码放在 `if {test}:` 之下。"),
)
_DOWNLOAD = Message(
    Text("All processes download at once", "所有进程会同时下载"),
    do=Text("Download the data once before you start them.", "请在启动前先下载好数据。"),
)
_WAIT = Text("Waits until the first process has written", "等待第一个进程写完")


class RankZero:
    """Guards what only the first process may do."""

    def __init__(self, training: Training, holders: list[Holder], changes: ProgramChanges) -> None:
        self.training = training
        self.changes = changes
        self.models = [origin for holder in holders for origin in holder.made]
        # Functions that write files and do nothing that other processes need.
        self.saving = {
            statement
            for file, statement in training.program.statements
            if isinstance(statement, FUNCTIONS) and self._only_saves(file, statement)
        }

    def guard(self) -> None:
        """Look at every call of the program."""
        for file, call in self.training.program.calls:
            self._look_at(file, call)

    def test(self, file: ProgramModule) -> str:
        """The test for the first process; other scripts, without a process group, may use other files as well."""
        dist = self.changes.of(file).name_of("torch.distributed", "dist")
        if file is self.training.program.main:
            return f"{dist}.get_rank() == 0"
        return f"not {dist}.is_initialized() or {dist}.get_rank() == 0"

    def _only_saves(self, file: ProgramModule, function: FunctionNode) -> bool:
        sites = self.training.flow.calls_of(function)
        nodes = list(own_nodes(function))
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        if not any(_is_write(file, call) for call in calls) or not sites:
            return False
        if any(self.runs_a_model(file, call) for call in calls) or self.training.trains(file, function):
            return False
        has_other_effects = any(
            isinstance(node, (ast.Global, ast.For))
            or (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
            or (isinstance(node, ast.Return) and node.value is not None)
            for node in nodes
        )
        return not has_other_effects and all(
            _statement_of(site.file, site.call) is not None for site in sites
        )

    def runs_a_model(self, file: ProgramModule, call: ast.Call, depth: int = 3) -> bool:
        """Whether a call runs a wrapped model: all processes must do that together."""
        if isinstance(call.func, (ast.Name, ast.Attribute)):
            if self.training.flow.comes_from(file, call.func, *self.models):
                return True
        called = self.training.flow.function_called(file, call) if depth else None
        return called is not None and any(
            self.runs_a_model(called.file, inner, depth - 1) for inner in own_calls(called.node)
        )

    def _is_for_one(self, file: ProgramModule, call: ast.Call) -> bool:
        """Whether a call is a statement of its own that one process can run without the others."""
        return _statement_of(file, call) is not None and not any(
            isinstance(node, ast.Call) and self.runs_a_model(file, node) for node in ast.walk(call)
        )

    def _is_guarded(self, file: ProgramModule, call: ast.Call) -> bool:
        """Whether a call stands in a function whose calls are guarded."""
        return not self.saving.isdisjoint(file.owners(call))

    def _look_at(self, file: ProgramModule, call: ast.Call) -> None:
        changes = self.changes.of(file)
        name = file.qualified(call.func)
        callee = self.training.flow.callee(file, call)
        if (callee is not None and callee.node in self.saving) or _is_write(file, call):
            self._guard_statement(file, call)
        elif name in _FILE_OPERATIONS:
            self._look_at_operation(file, call)
        elif name in _WRITERS:
            self._look_at_writer(file, call)
        elif called_name(call) in _BARS and name.startswith("tqdm"):
            if not any(keyword.arg in ("disable", None) for keyword in call.keywords):
                dist = changes.name_of("torch.distributed", "dist")
                first = "" if file is self.training.program.main else f"{dist}.is_initialized() and "
                text = f"disable={first}{dist}.get_rank() != 0"
                changes.replace(call, _BAR_ONCE, add_argument(file.module, call, text))
        elif name in ("os.makedirs", "os.mkdir") or self._is_path_mkdir(file, call):
            _make_folder(file, call, changes)
        elif name == "wandb.init" and any(keyword.arg in ("mode", None) for keyword in call.keywords):
            changes.remark(Kind.TODO, call, _WHERE.format(test=self.test(file)))
        elif name == "wandb.init":
            text = f'mode=None if {self.test(file)} else "disabled"'
            changes.replace(call, _RUN_ONCE, add_argument(file.module, call, text))
        elif name == "torch.load":
            self._look_at_load(file, call, changes)
        elif isinstance(call.func, ast.Name) and call.func.id == "open" and _opens_for_writing(call):
            if not self._is_guarded(file, call):
                changes.remark(Kind.TODO, call, _FILE.format(test=self.test(file)))
        elif any(
            keyword.arg == "download" and getattr(keyword.value, "value", None) is True
            for keyword in call.keywords
        ):
            changes.remark(Kind.TODO, call, _DOWNLOAD)

    def _look_at_operation(self, file: ProgramModule, call: ast.Call) -> None:
        """In the script itself and beside a save it is about what the program writes."""
        function = file.function_around(file.statement_of(call))
        is_beside = function is not None and any(_is_write(file, other) for other in own_calls(function))
        if file is self.training.program.main or is_beside:
            self._guard_statement(file, call)
        else:
            self.changes.of(file).remark(Kind.TODO, call, _WHERE.format(test=self.test(file)))

    def _guard_statement(self, file: ProgramModule, call: ast.Call) -> None:
        if self._is_guarded(file, call):
            return
        statement = _statement_of(file, call)
        if statement is not None and self._is_for_one(file, call):
            self.changes.of(file).guard(statement, self.test(file), _SAVED_ONCE)
        else:
            self.changes.of(file).remark(Kind.TODO, call, _WHERE.format(test=self.test(file)))

    def _look_at_writer(self, file: ProgramModule, call: ast.Call) -> None:
        """A writer is None elsewhere, if every use of it can be guarded."""
        writer = Origin(file, call)
        flow, calls = self.training.flow, list(self.training.program.calls)
        uses = [
            (where, use)
            for where, use in calls
            if isinstance(use.func, ast.Attribute)
            and use is not call
            and flow.comes_from(where, use.func.value, writer)
        ]
        parent = file.parent(call)
        is_assigned = isinstance(parent, ASSIGNMENTS) and parent.value is call
        # To something that is not of the program.
        is_handed = any(
            flow.callee(where, other) is None
            and any(flow.comes_from(where, item, writer) for item in other.args)
            for where, other in calls
        )
        if not is_assigned or is_handed or not all(self._is_for_one(*use) for use in uses):
            self.changes.of(file).remark(Kind.TODO, call, _WHERE.format(test=self.test(file)))
            return
        end = file.module.end(call)
        self.changes.of(file).replace(call, _SAVED_ONCE, Edit(end, end, f" if {self.test(file)} else None"))
        for use in uses:
            self._guard_statement(*use)

    def _is_path_mkdir(self, file: ProgramModule, call: ast.Call) -> bool:
        """mkdir of a pathlib.Path, and not of some other object."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "mkdir":
            return False
        made = self.training.flow.origins(file, call.func.value)
        return bool(made) and all(called_name(origin.node) == "Path" for origin in made)

    def _look_at_load(self, file: ProgramModule, call: ast.Call, changes: FileChanges) -> None:
        """What is loaded behind the training may have been saved by it."""
        before: ast.stmt = file.statement_of(call)
        for owner in file.owners(call):
            if isinstance(owner, (*FUNCTIONS, ast.ClassDef, ast.Module, ast.For, ast.While)):
                break
            if isinstance(owner, ast.stmt):
                before = owner
        earlier = file.tree.position(before).block
        if any(
            self.training.trains(file, node)
            for node in earlier[: earlier.index(before)]
            if not isinstance(node, FUNCTIONS)
        ):
            dist = changes.name_of("torch.distributed", "dist")
            changes.before(before, [f"{dist}.barrier()"], _WAIT, call)


def _is_write(file: ProgramModule, call: ast.Call) -> bool:
    return file.qualified(call.func) in _WRITES or called_method(call) in _WRITING_METHODS


def _statement_of(file: ProgramModule, call: ast.Call) -> ast.stmt | None:
    """The statement that consists of nothing but a call."""
    statement = file.statement_of(call)
    return statement if isinstance(statement, ast.Expr) and statement.value is call else None


def _make_folder(file: ProgramModule, call: ast.Call, changes: FileChanges) -> None:
    if any(keyword.arg in ("exist_ok", None) for keyword in call.keywords):
        return
    edits = [add_argument(file.module, call, "exist_ok=True")]
    if file.qualified(call.func) == "os.mkdir" and isinstance(call.func, ast.Attribute):
        edits.append(Edit(*file.module.attribute_span(call.func), "makedirs"))
    changes.replace(call, _RACE, *edits)


def _opens_for_writing(call: ast.Call) -> bool:
    modes = [*call.args[1:2], *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    return any(set(text_of(mode)) & set("wax") for mode in modes)
