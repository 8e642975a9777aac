"""TF701 (opt-in): models with convolutions and their images in channels_last, the layout that some vendors want."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from torchferry.conversion.program.blocks import add_imports, heads_of
from torchferry.conversion.program.definitions import ProjectDefinition
from torchferry.conversion.program.module import PassModule, Routine, called_method, calls_in, last_name
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind, Message
from torchferry.source.module import PythonModule
from torchferry.source.scopes import any_line_in
from torchferry.text import Text
from torchferry.vendors.phrases import phrase

_ADDED = Text("Put in channels_last, so that convolutions need no copy", "转为 channels_last，避免卷积时拷贝")
_NOT_WANTED = Message(
    Text("channels_last not used", "未使用 channels_last"),
    why=Text("{company} does not need it: {format}", "{company} 并不需要它：{format}"),
)
_NO_CONVOLUTION = Message(
    Text("Model without image convolutions", "模型没有图像卷积"),
    why=Text("channels_last only helps convolutions of images.", "channels_last 只对图像卷积有益。"),
)
_OUT_OF_SIGHT = Message(
    Text("Model that may convolve images", "可能对图像做卷积的模型"),
    why=Text("The code does not show whether channels_last helps.", "代码没有显示 channels_last 是否有益。"),
    do=Text(
        "If the model convolves images, write `{added}` after it.",
        "若模型对图像做卷积，请在其后写 `{added}`。",
    ),
)
# What is only found beside models of images.
_OF_IMAGES = re.compile(
    r"(?i)torchvision|\btimm\b|conv2d|images?\b|(?<![a-z])imgs?(?![a-z])|pixel|resnet|cifar|mnist|yolo|detector"
)
_MODELS = re.compile(r"(?i)^(model|net|network|backbone)$")
_IMAGES = re.compile(r"(?i)^(images?|imgs?)$")
_LABELS = re.compile(r"(?i)label|target|mask|^y$|index|idx|len|token|text|caption")
_TWO_DIMENSIONS = re.compile(r"(?i)conv(transpose)?_?2d")
# Models that take something else than a batch of images, or make one of it.
_OTHER_INPUTS = re.compile(r"(?i)conv(transpose)?_?3d|\.unsqueeze\(|\[None|Embedding\(")
_THREE_DIMENSIONS = re.compile(r"(?i)conv(transpose)?_?3d")
_ANY_DIMENSIONS = re.compile(r"\bspatial_dims\b")  # a parameter of the model, for two dimensions or three
_VOLUMES = re.compile(r"(?i)3d|spatial_dims|volume|video")
_MOVES = ("cuda", "to")
_SHAPES = frozenset({"view", "reshape", "flatten", "unsqueeze", "squeeze", "permute", "transpose"})


class _Layout:
    def __init__(self, context: FileContext) -> None:
        self.context = context
        self.program = PassModule(context)
        self.module = context.module

    def proposals(self, torch: str) -> Iterator[Proposal]:
        suffix = f".to(memory_format={torch}.channels_last)"
        for statement in self._statements_with(b".cuda(", b".to("):
            for target, call in _moves(statement):
                routine = self.program.routine_of(statement)
                if target in self._done or called_method(call) not in _MOVES or _is_cast(call):
                    continue
                if self._is_model(target, call, routine):
                    yield from self._model(target, call, routine, suffix)
                elif self._is_image(target, call, routine):
                    yield self._change(call, suffix)

    def _model(self, target: str, call: ast.Call, routine: Routine, suffix: str) -> Iterator[Proposal]:
        convolves = self._convolves(target, call, routine)
        if convolves is False:
            yield self.context.propose(Kind.INFO, call, _NO_CONVOLUTION)
            return
        if convolves is None and (self._has_volumes or not _OF_IMAGES.search(self.module.decoded.text)):
            yield self.context.propose(Kind.TODO, call, _OUT_OF_SIGHT.format(added=suffix))
            return
        yield self._change(call, suffix)

    def _change(self, call: ast.Call, suffix: str) -> Proposal:
        vendor = self.context.target.vendor
        if not vendor.channels_last and vendor.memory_format:
            message = _NOT_WANTED.format(company=vendor.company_name, format=phrase(vendor.memory_format))
            return self.context.propose(Kind.INFO, call, message)
        return self.context.propose(Kind.CHANGE, call, _ADDED, self.module.insertion_after(call, suffix))

    def _statements_with(self, *words: bytes) -> Iterator[ast.stmt]:
        """The statements that hold one of these words, outside of their blocks."""
        lines = sorted(self.module.lines_with(words))
        for statement in self.program.statements:
            block = getattr(statement, "body", None)
            last = block[0].lineno if block else statement.end_lineno or 0
            if any_line_in(lines, statement.lineno, last):
                yield statement

    @cached_property
    def _has_volumes(self) -> bool:
        """Whether the module speaks of three dimensions: then what is not in sight may have them."""
        return _VOLUMES.search(self.module.decoded.text) is not None

    @cached_property
    def _done(self) -> set[str]:
        """Variables that a script puts into channels_last itself."""
        found: set[str] = set()
        for statement in self._statements_with(b"memory_format"):
            if any(_names_format(call) for call in calls_in(statement)):
                found.update(target for target, _ in _moves(statement))
        return found

    @cached_property
    def _with_parameters(self) -> set[str]:
        return {
            ast.unparse(call.func.value)  # type: ignore[attr-defined]
            for statement in self._statements_with(b"parameters")
            for call in calls_in(statement)
            if called_method(call) in ("parameters", "named_parameters")
        }

    def _is_model(self, target: str, call: ast.Call, routine: Routine) -> bool:
        name = target.rpartition(".")[2]
        return bool(_MODELS.match(name)) or (
            target in self._with_parameters and self._convolves(target, call, routine) is True
        )

    def _convolves(self, model: str, call: ast.Call, routine: Routine) -> bool | None:
        """Whether a model has convolutions of images; None when not all of it is in sight."""
        sources = list(self._sources_of(model, call, routine))
        if any(source is not None and _ANY_DIMENSIONS.search(source) for source in sources):
            return None
        if any(source is not None and _THREE_DIMENSIONS.search(source) for source in sources):
            return False
        if any(source is not None and _TWO_DIMENSIONS.search(source) for source in sources):
            return True
        return None if not sources or None in sources else False

    def _sources_of(self, model: str, call: ast.Call, routine: Routine) -> Iterator[str | None]:
        """The code of what a model is made of; None for a part that is elsewhere."""
        made = list(self.program.assignments(model.rpartition(".")[2]))
        here = [item for item in made if self.program.routine_of(item[0]) is routine]
        for value in [call, *(value for _, value in here or made)]:
            for made_by in _calls_but_of_devices(value):
                yield from self._source_of(made_by)

    def _source_of(self, call: ast.Call) -> Iterator[str | None]:
        root = self.module.tree
        qualified = self.program.qualified(call.func, root)
        dimensions = _spatial_dims(call)
        if dimensions:
            yield f"conv{dimensions}d"
        elif qualified.startswith("torch.nn."):
            inside = [item for item in ast.walk(call) if isinstance(item, ast.Name) and item is not call.func]
            is_whole = all(self.program.qualified(item, root).startswith("torch") for item in inside)
            yield self.module.segment(call) if is_whole or _TWO_DIMENSIONS.search(ast.unparse(call)) else None
        else:
            found = self._class_of(call.func)
            if found is not None:
                yield _class_source(found.node, found.file.module)
            elif qualified:
                yield None

    def _class_of(self, function: ast.expr) -> ProjectDefinition[FileContext] | None:
        """The class of the project that `Net(...)` or `Net.of_size(...)` makes an object of."""
        owner = function.value if isinstance(function, ast.Attribute) else function
        found = (self.program.callee(node, self.module.tree) for node in (function, owner))
        return next((item for item in found if item and isinstance(item.node, ast.ClassDef)), None)

    def _is_image(self, target: str, call: ast.Call, routine: Routine) -> bool:
        """What a model gets: by its name, or because the model convolves images; never what has another shape by then."""
        name = target.rpartition(".")[2]
        if _LABELS.search(name):
            return False
        mentions = self._statements_with(target.encode())
        statements = [item for item in mentions if self.program.routine_of(item) is routine]
        if any(_reshapes(item, target) for item in statements):
            return False
        fed = [other for item in statements for other in calls_in(item) if self._feeds(target, other)]
        known = [self._convolves(ast.unparse(other.func), other, routine) for other in fed]
        if _IMAGES.match(name) and not self._has_volumes and _is_held(call):
            return bool(known) and False not in known
        made_of = (self._sources_of(ast.unparse(other.func), other, routine) for other in fed)
        others = (source is None or _OTHER_INPUTS.search(source) for sources in made_of for source in sources)
        return True in known and not any(others)

    def _feeds(self, target: str, call: ast.Call) -> bool:
        """model(data)"""
        is_model = _MODELS.match(last_name(call.func)) or ast.unparse(call.func) in self._with_parameters
        return bool(is_model and call.args and ast.unparse(call.args[0]) == target)


def _spatial_dims(call: ast.Call) -> int:
    """UNet(spatial_dims=2): so many dimensions; 0 if the call does not say."""
    for keyword in call.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if keyword.arg == "spatial_dims" and isinstance(value, int):
            return value
    return 0


def _calls_but_of_devices(value: ast.expr) -> Iterator[ast.Call]:
    """The calls of an expression without those that name a device: of Net().to(get_device()) the first two."""
    waiting: list[ast.AST] = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call):
            yield node
        is_move = isinstance(node, ast.Call) and called_method(node) in _MOVES
        waiting.extend([node.func] if is_move else ast.iter_child_nodes(node))  # type: ignore[attr-defined]


def _class_source(node: ast.AST, module: PythonModule) -> str:
    """The code of a class and of the classes of its module that it uses."""
    classes = {item.name: item for item in module.tree.body if isinstance(item, ast.ClassDef)}
    wanted, done, source = [name for name, item in classes.items() if item is node], set[str](), ""
    while wanted:
        current = wanted.pop()
        if current in classes and current not in done:
            done.add(current)
            source += module.segment(classes[current])
            used = {node.id for node in ast.walk(classes[current]) if isinstance(node, ast.Name)}
            wanted += sorted(used - done)
    return source


def _reshapes(statement: ast.stmt, target: str) -> bool:
    """images = images.reshape(-1, 784).to(device), or images.unsqueeze(0) anywhere"""
    pairs = _pairs(statement) if isinstance(statement, ast.Assign) else []
    assigned = any(ast.unparse(one) == target for one, _ in pairs)
    for head in heads_of(statement):
        for node in ast.walk(head):
            if isinstance(node, ast.Call) and called_method(node) in _SHAPES:
                if assigned or ast.unparse(node.func.value) == target:  # type: ignore[attr-defined]
                    return True
            if isinstance(node, ast.Subscript) and ast.unparse(node.value) == target:
                inner = ast.walk(node.slice)  # images[None]
                if any(isinstance(item, ast.Constant) and item.value is None for item in inner):
                    return True
    return False


def _is_held(call: ast.Call) -> bool:
    """Whether a variable is moved, not something that is made on the spot."""
    node: ast.expr = call
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return False
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id != "torch"


def _moves(statement: ast.stmt) -> Iterator[tuple[str, ast.Call]]:
    """The variables that a statement moves, with the last call of each move."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if isinstance(call.func, ast.Attribute):
            yield ast.unparse(call.func.value), call
    if not isinstance(statement, ast.Assign):
        return
    for one, moved in _pairs(statement):
        if isinstance(moved, ast.Call) and isinstance(one, (ast.Name, ast.Attribute)):
            yield ast.unparse(one), moved


def _pairs(statement: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """What is assigned to what; `a, b = c, d` is two."""
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _names_format(call: ast.Call) -> bool:
    return any(keyword.arg == "memory_format" for keyword in call.keywords)


def _is_cast(call: ast.Call) -> bool:
    """x.to(torch.float16), x.to(memory_format=...)"""
    if _names_format(call):
        return True
    first = ast.unparse(call.args[0]) if call.args else ""
    return called_method(call) == "to" and (
        not (call.args or call.keywords) or first.startswith("torch.float")
    )


def _restructure(context: FileContext) -> Iterator[Proposal]:
    torch = context.module.imported_as("torch")
    proposals = list(_Layout(context).proposals(torch or "torch"))
    changed = next((item for item in proposals if item.edits), None)
    if changed is not None and not torch:
        if "torch" in context.module.scopes.root.bindings:
            return
        imports = add_imports(context.module, ["import torch"])
        proposals[proposals.index(changed)] = replace(changed, edits=(*changed.edits, *imports))
    yield from proposals


# Whether a module moves models or images to a device, told from its bytes: parsing it to find out takes far longer.

_MODEL = rb"(?:model|net|network|backbone)"
_IS_MODEL = re.compile(rb"(?i)(?:.*\.)?" + _MODEL + rb"\Z")
_IS_NAMED = re.compile(rb"(?i)(?:.*\.)?(?:" + _MODEL + rb"|images?|imgs?)\Z")
_MOVE = re.compile(rb"\.(?:to|cuda)\(")
_TARGETS = re.compile(rb"[ \t]*((?:[\w.]+[ \t]*,[ \t]*)*[\w.]+)[ \t]*(?:,[ \t]*)?=(?!=)")
_MOVED_ITSELF = re.compile(rb"[ \t]*([\w.]+)\Z")
_WITH_PARAMETERS = re.compile(rb"\.(?:named_)?parameters\(")
_NAME_BEFORE = re.compile(rb"[\w.]+\Z")
_LONGEST = 4000  # bytes of a statement


def moves_models_or_images(data: bytes) -> bool:
    """Whether something is moved that is called a model or images, has parameters, or is given to a model."""
    moved: set[bytes] = set()
    for match in _MOVE.finditer(data):
        moved.update(_moved(data, match.start()))
    if any(map(_IS_NAMED.match, moved)):
        return True
    if not moved:
        return False
    models = {_before(data, match.start()) for match in _WITH_PARAMETERS.finditer(data)}
    if not moved.isdisjoint(models):
        return True
    given = re.compile(rb"\(\s*(?:" + b"|".join(map(re.escape, sorted(moved))) + rb")\b")
    called = {_before(data, match.start()) for match in given.finditer(data)}
    return any(name in models or _IS_MODEL.match(name) for name in called)


def _moved(data: bytes, position: int) -> list[bytes]:
    """The variables of the statement in which something is moved; none if it moves no variable."""
    start = data.rfind(b"\n", 0, position) + 1
    itself = _MOVED_ITSELF.match(data[start:position])
    if itself:
        return [itself.group(1)]
    # A statement of several lines begins where as many brackets are open as are closed.
    while _closed(data[start:position]) > 0 and start > max(0, position - _LONGEST):
        start = data.rfind(b"\n", 0, start - 1) + 1
    targets = _TARGETS.match(data, start, position)
    return [name.strip() for name in targets.group(1).split(b",")] if targets else []


def _closed(text: bytes) -> int:
    """How many more brackets a text closes than it opens."""
    return sum(map(text.count, (b")", b"]", b"}"))) - sum(map(text.count, (b"(", b"[", b"{")))


def _before(data: bytes, position: int) -> bytes:
    """The dotted name that ends here."""
    match = _NAME_BEFORE.search(data, max(0, position - 100), position)
    return match.group() if match else b""


RULE = Rule(
    id="TF701",
    name="channels-last",
    summary=Text("Puts models and images in channels_last (NHWC)", "将模型与图像转为 channels_last（NHWC）"),
    triggers=(".cuda(", ".to("),
    worth=moves_models_or_images,
    option="channels_last",
    restructure=_restructure,
)
