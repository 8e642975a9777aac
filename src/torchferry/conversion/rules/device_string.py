"""TF105: strings that name a CUDA device, in every spelling, where they stand for a device."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.conversion.common_edits import respell
from torchferry.conversion.inference.evidence import RoleVerdict, Vocabulary
from torchferry.conversion.inference.roles import StringRole, left_because
from torchferry.conversion.inference.uses import role_of
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.rules.cuda_reference import names_called_method
from torchferry.conversion.site import Site
from torchferry.conversion.target import Spelling
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.text import Text

DEVICE_CHANGED = Text("Device string changed", "设备字符串已修改")
_UNCLEAR = Message(
    Text("String that may name a device", "可能是设备名的字符串"),
    why=Text("{reason}", "{reason}"),
    do=Text("If it is a device, write {new}.", "若是设备名，请改为 {new}。"),
)
_BYTES = Message(
    Text("Device name as bytes", "以字节表示的设备名"),
    why=Text("A longer or shorter name changes the length of the data.", "名称长度不同会改变数据长度。"),
    do=Text("Write {new} by hand.", "请手动改为 {new}。"),
)
_KEY_OF_PROCESSOR = Message(
    Text('Device key after `"cpu"`', '位于 `"cpu"` 之后的设备键'),
    why=Text(
        'Without an accelerator {new} is `"cpu"`, and this entry would replace the other one.',
        '没有加速卡时 {new} 就是 `"cpu"`，此项会覆盖前一项。',
    ),
    do=Text('Write this entry before the one for `"cpu"`.', '请将此项写在 `"cpu"` 之前。'),
)
_PIECES = Message(
    Text("Device name put together from pieces", "由多段拼接的设备名"),
    do=Text("Write {new} by hand.", "请手动改为 {new}。"),
)

_PLAIN = re.compile(r"cuda(?::\d+)?\Z")
_TEMPLATE = re.compile(r"cuda:(?:%[sdi]|\{[^{}]*\})?\Z")

_TAKE_A_DEVICE_FIRST = (
    "torch.device", "torch.set_default_device", "torch.autocast", "torch.amp.autocast",
    "torch.amp.autocast_mode.autocast", "torch.amp.is_autocast_available", "torch.amp.GradScaler",
    "torch.amp.grad_scaler.GradScaler", "torch.get_device_module", "torch.Generator", "torch.Stream",
    "torch.Event", "torch.is_autocast_enabled", "torch.set_autocast_enabled", "torch.get_autocast_dtype",
    "torch.set_autocast_dtype", "torch.distributed.init_device_mesh",
    "torch.distributed.device_mesh.init_device_mesh", "torch.distributed.DeviceMesh",
    "torch.distributed.device_mesh.DeviceMesh", "torch.distributed.get_default_backend_for_device",
)  # fmt: skip
DEVICES = Vocabulary(
    noun=Text("device type", "设备类型"),
    name=re.compile(
        r"(?i)device|(?:^|_)dev(?:_|\d|$)|map_?loc|^loc$|(?:^|_)location$|accelerator|^gpus?$|(?:^|_)gpu(?:_id)?$"
    ),
    own=re.compile(r"cuda(?::|$)"),
    siblings=frozenset(
        {"cpu", "mps", "xpu", "npu", "mlu", "hpu", "meta", "xla", "tpu", "ipu", "hip", "rocm", "auto"}
    ),
    functions={**dict.fromkeys(_TAKE_A_DEVICE_FIRST, (0,)), "torch.load": (1,), "torch.jit.load": (1,)},
    methods=dict.fromkeys(
        ("to", "autocast", "GradScaler", "init_device_mesh", "pin_memory", "to_empty"), (0,)
    ),
    default=RoleVerdict.UNCLEAR,
    target_word=lambda target: target.device.word,
)


def _check(site: Site[ast.expr]) -> Iterator[Proposal]:
    strong = _strength(site)
    if strong is None or names_called_method(site):
        return
    role = role_of(site, DEVICES)
    if role.verdict is RoleVerdict.UNCLEAR and strong:
        role = StringRole(RoleVerdict.YES)
    if isinstance(site.node, ast.Constant) and isinstance(site.node.value, bytes):
        yield site.remark(Kind.TODO, _BYTES.format(new=site.target.device.shown))
    elif role.verdict is RoleVerdict.YES:
        yield _change(site)
    elif role.verdict is RoleVerdict.UNCLEAR:
        message = _UNCLEAR.format(reason=role.reason, new=site.target.device.shown)
        yield site.remark(Kind.TODO, message)
    elif not role.is_prose and not _is_attribute_of_torch(site):
        yield site.remark(Kind.INFO, left_because(role))


def _is_attribute_of_torch(site: Site[ast.expr]) -> bool:
    """getattr(torch, 'cuda') is another rule's business."""
    parent = site.parent
    return isinstance(parent, ast.Call) and bool(parent.args) and site.qualified(parent.args[0]) == "torch"


def _strength(site: Site[ast.expr]) -> bool | None:
    """None if the string is no device at all, True if its value alone says that it is one."""
    node = site.node
    if isinstance(node, ast.JoinedStr):
        return True if _is_device_f_string(node) else None
    if isinstance(node, ast.Constant) and node.value == b"cuda":
        return False
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return None
    if isinstance(site.parent, ast.JoinedStr):
        return None  # seen as part of the f-string
    if _PLAIN.match(node.value):
        return ":" in node.value
    if not _TEMPLATE.match(node.value):
        return None
    if node.value == "cuda:" and isinstance(site.parent, (ast.Call, ast.Compare, ast.Tuple, ast.List)):
        return False  # device.startswith("cuda:"), but also print("cuda:", x)
    # 'cuda:%d' % i, 'cuda:{}'.format(i), 'cuda:' + str(i); but not 'cuda:' as a label of its own.
    if isinstance(site.parent, ast.BinOp):
        return True if site.parent.left is node else None
    return True if isinstance(site.parent, ast.Attribute) and site.parent.attr == "format" else None


def _is_device_f_string(node: ast.JoinedStr) -> bool:
    if len(node.values) < 2 or not isinstance(node.values[0], ast.Constant):
        return False
    fields = all(isinstance(value, ast.FormattedValue) for value in node.values[1:])
    return fields and node.values[0].value in ("cuda:", "cuda")


def _change(site: Site[ast.expr]) -> Proposal:
    if site.target.is_portable and _replaces_processor(site):
        return site.remark(Kind.TODO, _KEY_OF_PROCESSOR.format(new=site.target.device.shown))
    edits = _portable_comparison(site) if site.target.is_portable else []
    needs_prelude = not edits
    edits = edits or respell(site.module, site.node, "cuda", site.target.device)
    edits += _prefix_length(site) + _index_of_location(site)
    if not edits:
        return site.remark(Kind.TODO, _PIECES.format(new=site.target.device.shown))
    return site.change(DEVICE_CHANGED, *edits, needs_prelude=needs_prelude)


def _replaces_processor(site: Site[ast.expr]) -> bool:
    """{"cpu": a, "cuda": b}: where there is no accelerator, the second key would be "cpu" again, and b would win."""
    table = site.parent
    if not isinstance(table, ast.Dict):
        return False
    keys = [key.value for key in table.keys if isinstance(key, ast.Constant)]
    return site.node in table.keys and "cpu" in keys[: keys.index("cuda") if "cuda" in keys else None]


def _index_of_location(site: Site[ast.expr]) -> list[Edit]:
    """`map_location=f"cuda:{i}"`: torch.load knows no `cpu:0`."""
    if not site.target.is_portable or ":" not in site.module.segment(site.node):
        return []
    value: ast.AST = site.node
    for node in site.place.upwards():
        if isinstance(node, ast.keyword) and node.arg == "map_location":
            suffix = f' if {site.target.device.expression} != "cpu" else "cpu"'
            return [site.module.insertion_after(value, suffix)]
        if not isinstance(node, (ast.BinOp, ast.Call, ast.Attribute)):
            break
        value = node
    return []


def _prefix_length(site: Site[ast.expr]) -> list[Edit]:
    """`name[:4] == 'cuda'` compares as many characters as the word has."""
    parent, word = site.parent, site.target.device.word
    if not isinstance(parent, ast.Compare) or not word:
        return []
    for side in (parent.left, *parent.comparators):
        if isinstance(side, ast.Subscript) and isinstance(side.slice, ast.Slice):
            upper = side.slice.upper
            if isinstance(upper, ast.Constant) and upper.value == len("cuda") and len(word) != len("cuda"):
                return [site.module.replacement(upper, str(len(word)))]
    return []


def _portable_comparison(site: Site[ast.expr]) -> list[Edit]:
    """`== 'cuda'` asks for an accelerator, whichever it is: `!= 'cpu'`."""
    parent, module = site.parent, site.module
    if not isinstance(parent, ast.Compare) or len(parent.ops) != 1 or not isinstance(site.node, ast.Constant):
        return []
    if site.node.value != "cuda":
        return []
    opposite = _OPPOSITE.get(type(parent.ops[0]))
    if opposite is None or (isinstance(parent.ops[0], (ast.In, ast.NotIn)) and parent.left is not site.node):
        return []
    old, new = opposite
    between = module.data[module.end(parent.left) : module.start(parent.comparators[0])]
    position = between.find(old.encode())
    if position < 0:
        return []
    start = module.end(parent.left) + position
    word = respell(module, site.node, "cuda", Spelling(word="cpu"))
    return [*word, Edit(start, start + len(old), new)] if word else []


_OPPOSITE: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}

RULE = Rule(
    id="TF105",
    name="device-string",
    summary=Text(
        "Changes strings that name a CUDA device to the target's device",
        "将表示 CUDA 设备的字符串改为目标设备",
    ),
    triggers=("cuda",),
    nodes=(ast.Constant, ast.JoinedStr),
    check=_check,
)
