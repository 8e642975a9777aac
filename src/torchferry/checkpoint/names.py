"""Names in a checkpoint: of its parts, and those of tensors, with prefixes and patterns."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torchferry.checkpoint.model import (
    DTENSOR,
    LOCAL_PART,
    SPARSE,
    Global,
    Known,
    Opaque,
    Ordered,
    TensorEntry,
)
from torchferry.errors import InputError
from torchferry.text import NOTHING, Text

# A hostile file can name one part so often that nobody lives to see the end of the walk.
_MOST_PARTS = 1_000_000
_MOST_LETTERS = 100_000_000  # of all names together
_DEEPEST = 200
_LONGEST_KEY = 2000
_DEEPEST_MODEL = 4
# What a module's attributes are called: their contents belong to the module itself.
_MODULE_PARTS = ("_parameters", "_buffers", "_modules")
# Where programs keep a model's weights, the likeliest first.
_MODEL_KEYS = (
    "state_dict", "model_state_dict", "model_state", "model", "net", "network", "module", "weights", "params", "student",
)  # fmt: skip
_NOT_A_MODEL = ("optim", "sched", "scaler", "rng", "callback")  # anywhere in a key
_NOT_A_MODELS_WORDS = {"random", "seed", "loops"}
_SPLIT = re.compile(r"[\W_]+")
_NAMED = 12


@dataclass(frozen=True)
class StateDict:
    """A part of the tree that a model can be filled with."""

    path: tuple[str, ...]
    tensors: Mapping[str, TensorEntry]
    metadata: object = None  # of an OrderedDict: the versions of modules, by their names

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def is_average(self) -> bool:
        return any("ema" in part.lower().split("_") or part.lower() == "ema" for part in self.path)


def key_name(key: object) -> str:
    """A key as a part of a name: what is neither text nor number can take for ever to be written out."""
    if isinstance(key, str):
        return key if len(key) <= _LONGEST_KEY else f"{key[:_LONGEST_KEY]}..."
    if isinstance(key, int) and key.bit_length() > _LONGEST_KEY:
        return "a large number"
    if isinstance(key, tuple) and len(key) < 9 and all(isinstance(part, (str, int, float)) for part in key):
        return f"({', '.join(map(key_name, key))})"
    return str(key) if isinstance(key, (int, float, type(None))) else f"a {type(key).__name__}"


def parts(node: object) -> Mapping[object, object]:
    """What a node holds, by key, attribute or position; nothing for a tensor or a plain value."""
    if isinstance(node, dict):
        return node
    if isinstance(node, Opaque):
        return _attributes(node)
    if isinstance(node, (list, tuple)):
        return dict(enumerate(node))
    return {}


def _attributes(node: Opaque) -> dict[object, object]:
    state = node.state
    if isinstance(state, tuple) and len(state) == 2 and isinstance(state[0], dict):  # with slots
        state = state[0]
    inside: dict[object, object] = dict(node.entries)
    inside.update(enumerate(node.items))
    if not isinstance(state, dict) or "_modules" not in state:
        inside.update(state if isinstance(state, dict) else {})
        return inside
    # Of a module what its state dict has: no plain attributes, no buffers that are left out of it.
    held = [state.get(name) for name in _MODULE_PARTS]
    of_module = {name: part for each in held if isinstance(each, dict) for name, part in each.items()}
    left_out = state.get("_non_persistent_buffers_set")
    for name in left_out if isinstance(left_out, set) else ():
        of_module.pop(name, None)
    return inside | of_module


def tensors_of(node: object) -> dict[str, TensorEntry]:
    """Every tensor under a node, by its dotted name; a part that is met within itself is passed over."""
    return dict(_walk(node))


def _walk(root: object) -> Iterator[tuple[str, TensorEntry]]:
    pending: list[tuple[str, object, tuple[int, ...]]] = [("", root, ())]
    seen = letters = 0
    while pending:
        name, node, above = pending.pop()
        seen += 1
        letters += len(name)
        if seen > _MOST_PARTS or letters > _MOST_LETTERS:
            raise InputError(
                Text(
                    f"more than {_MOST_PARTS:,} parts, or endless names; not a valid checkpoint",
                    f"超过 {_MOST_PARTS:,} 个部分，或名称无穷嵌套；不是合法的 checkpoint",
                )
            )
        if len(above) > _DEEPEST:
            raise InputError(
                Text("nested too deeply; not a valid checkpoint", "嵌套过深；不是合法的 checkpoint")
            )
        if isinstance(node, TensorEntry):
            yield name, node
        elif id(node) not in above:
            inside = [
                (f"{name}.{key_name(key)}" if name else key_name(key), part, (*above, id(node)))
                for key, part in parts(node).items()
            ]
            pending.extend(reversed(inside))


def state_dicts(tree: object) -> list[StateDict]:
    """The dictionaries and modules that hold weights, the likeliest first."""
    found = list(model_parts(tree, TensorEntry, Opaque))
    # The keys to a model in pieces: it is the whole tree, or lies where programs keep a model.
    first = found[0][0][:1] if found else ()
    places = [(), first] if first and key_name(first[0]).lower() in _MODEL_KEYS else [()]
    whole = next((place for place in places if first and is_model_in_pieces(_node(tree, place))), None)
    if whole is not None:
        rest = [(path, node) for path, node in found if path[: len(whole)] != whole]
        found = [(whole, _node(tree, whole)), *rest]
    states = [state_dict_at(tuple(map(key_name, path)), node) for path, node in found]

    def likelihood(state: StateDict) -> tuple[bool, int, int, int]:
        last = state.path[0].lower() if state.path else ""
        place = _MODEL_KEYS.index(last) if last in _MODEL_KEYS else len(_MODEL_KEYS)
        return state.is_average, place, len(state.path), -len(state.tensors)

    return sorted(states, key=likelihood)


def is_model_in_pieces(node: object) -> bool:
    """Whether it is one model whose names are cut at their dots into dictionaries, as Megatron saves it."""
    if not isinstance(node, dict) or not _holds_tensors_alone(node):
        return False
    paths = [path for path, _ in model_parts(node, TensorEntry, Opaque)]
    words = {key_name(key).lower() for path in paths for key in path}
    return len(paths) > 1 and max(map(len, paths)) > 1 and not words & {*_MODEL_KEYS, "ema"}


def _node(tree: Any, path: tuple[object, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def _holds_tensors_alone(node: object) -> bool:
    if isinstance(node, dict):
        return all(map(_holds_tensors_alone, node.values()))
    return isinstance(node, TensorEntry)


def state_dict_at(path: tuple[str, ...], node: object) -> StateDict:
    """A node, taken for a state dict."""
    return StateDict(path, tensors_of(node), node.metadata if isinstance(node, Ordered) else None)


def model_parts(
    tree: object, tensor: type, module: type | None = None, path: tuple[object, ...] = ()
) -> Iterator[tuple[tuple[object, ...], Any]]:
    """The keys to each dictionary of weights, and to each module; not to what lies within these."""
    called = key_name(path[-1]).lower() if path else ""
    if any(word in called for word in _NOT_A_MODEL) or set(_SPLIT.split(called)) & _NOT_A_MODELS_WORDS:
        return
    if isinstance(tree, dict):  # not that of an optimizer, or of random number generators: rows of bytes
        flat = [part for part in tree.values() if isinstance(part, tensor)]
        are_bytes = [str(part.dtype).endswith("uint8") and len(part.shape) == 1 for part in flat]  # type: ignore[attr-defined]
        if {"state", "param_groups"} <= tree.keys() or (0 < len(flat) == len(tree) and all(are_bytes)):
            return
    if module is not None and isinstance(tree, module):
        held = tensors_of(tree).values()
        # arrays are what meters keep
        if not all(each.is_array for each in held) and getattr(tree, "class_name", "") != DTENSOR:
            yield path, tree
    elif isinstance(tree, dict) and _holds_weights(tree, tensor, module):
        yield path, tree
    elif isinstance(tree, (dict, list)) and len(path) < _DEEPEST_MODEL:
        for key, part in parts(tree).items():
            yield from model_parts(part, tensor, module, (*path, key))


def _holds_weights(node: Mapping[object, object], tensor: type, module: type | None) -> bool:
    """Whether tensors are most of it: a best accuracy may be a tensor, too, beside the model's dictionary."""
    own = sum(isinstance(part, tensor) for part in node.values())
    for key, part in node.items():
        below = isinstance(part, dict) and sum(isinstance(each, tensor) for each in part.values())
        is_model = below and key_name(key).lower() in _MODEL_KEYS
        if is_model or below > own or (module is not None and isinstance(part, module) and own < 2):
            return False
    return own > 0


def at(tree: object, dotted: str) -> object:
    """The part of this name; a key may have dots itself."""
    node, rest = tree, dotted.split(".")
    while rest:
        inside = {key_name(key): part for key, part in parts(node).items()}
        fitting = next((n for n in range(len(rest), 0, -1) if ".".join(rest[:n]) in inside), 0)
        if not fitting:
            shown = ", ".join(list(inside)[:_NAMED]) or "-"
            more = ", ..." if len(inside) > _NAMED else ""
            raise InputError(
                Text(
                    f"--part {dotted}: no such part; choose one of {shown}{more}",
                    f"--part {dotted}：没有该部分；请从 {shown}{more} 中选择",
                )
            )
        node, rest = inside[".".join(rest[:fitting])], rest[fitting:]
    return node


# A part of a checkpoint that is no tensor, in a word.

_LONGEST_NUMBER = 1000  # bits
_ENTRIES = Text("dictionary of {count}", "{count} 个条目")
_SEQUENCES = {
    list: Text("list of {count}", "列表，长度 {count}"),
    tuple: Text("tuple of {count}", "元组，长度 {count}"),
}
_BYTES = Text("{count:,} bytes", "{count:,} 字节")
_SPARSE = Text("a sparse tensor", "稀疏张量")
_LOCAL = Text("DTensor: {part} of {whole}", "DTensor：{whole} 中的 {part}")
_LARGE = Text("a number of {count:,} bits", "{count:,} 位的整数")


def described(part: object) -> Text:
    """A part of a checkpoint in words."""
    if isinstance(part, dict):
        return _ENTRIES.format(count=len(part))
    if isinstance(part, (list, tuple)):
        return _SEQUENCES[tuple if isinstance(part, tuple) else list].format(count=len(part))
    if isinstance(part, (bytes, bytearray)):
        return _BYTES.format(count=len(part))
    if isinstance(part, int) and part.bit_length() > _LONGEST_NUMBER:
        return _LARGE.format(count=part.bit_length())
    if isinstance(part, Opaque):
        local = parts(part).get(LOCAL_PART)
        if part.class_name == DTENSOR and isinstance(local, TensorEntry):
            (whole,) = part.arguments
            return _LOCAL.format(part=_x(local.shape), whole=_x(whole))
        return _SPARSE if part.class_name == SPARSE else Text(part.class_name, part.class_name)
    if isinstance(part, Known):
        name = f"{part.name}({', '.join(described(each).en for each in part.arguments)})"
    elif isinstance(part, Global):
        name = part.dotted
    else:
        is_simple = isinstance(part, (str, int, float, type(None), complex))
        name = repr(part) if is_simple else type(part).__name__
    return Text(name, name)


def _x(shape: object) -> str:
    return ("x".join(map(str, shape)) or "a scalar") if isinstance(shape, tuple) else "?"


# DataParallel and DistributedDataParallel, torch.compile, FSDP, activation checkpointing.
WRAPPERS = ("module.", "_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")
_WRAPPED = re.compile(r"(?<![^.])(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.")
# A counter of training that inference does not read; checkpoints of old releases have none.
HARMLESS = "num_batches_tracked"
SHOWN = 10

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Renaming:
    """What was taken off the names so that they fit."""

    names: Mapping[str, str]  # in the file -> in the model
    stripped: str = ""  # what the names began with
    unwrapped: int = 0  # names that had a wrapper within

    def of_module(self, name: str) -> str:
        """The same for the name of a module."""
        return _WRAPPED.sub("", f"{name}.".removeprefix(self.stripped)).removesuffix(".")


@dataclass(frozen=True)
class WeightsFit:
    """How a file's weights fit a model's."""

    missing: tuple[str, ...]  # the model has them, the file has not
    unexpected: tuple[str, ...]  # the other way round
    misshapen: tuple[tuple[str, Shape, Shape], ...]  # name, in the file, in the model

    @property
    def is_whole(self) -> bool:
        return not (self.missing or self.unexpected or self.misshapen)


def wrappers_of(names: Collection[str]) -> tuple[str, ...]:
    """The prefixes of wrappers that every name begins with, outermost first."""
    found: list[str] = []
    rest = list(names)
    while rest:
        prefix = next((each for each in WRAPPERS if all(name.startswith(each) for name in rest)), None)
        if prefix is None:
            break
        found.append(prefix)
        rest = [name.removeprefix(prefix) for name in rest]
    return tuple(found)


def renamed_to_fit(names: Collection[str], wanted: Collection[str]) -> Renaming:
    """The names without what wrappers and frameworks put before them, as far as that makes more of them fit."""

    def without(prefix: str) -> Renaming:
        shorter = {name: name.removeprefix(prefix) for name in names}
        bare = {name: _WRAPPED.sub("", short) for name, short in shorter.items()}
        return Renaming(bare, prefix, sum(bare[name] != shorter[name] for name in bare))

    def score(renaming: Renaming) -> tuple[int, int]:
        return len(set(renaming.names.values()) & set(wanted)), -renaming.unwrapped

    as_it_is = Renaming({name: name for name in names})
    # What all names begin with, up to each dot, and nothing (for wrappers within names alone).
    ends = zip(min(names, default=""), max(names, default=""), strict=False)
    common = "".join(letter for letter, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], ends))
    prefixes = ["", *(common[: end + 1] for end, letter in enumerate(common) if letter == ".")]
    best = max(map(without, prefixes), key=score)
    return best if score(best)[0] > score(as_it_is)[0] else as_it_is


def fit(given: Mapping[str, Shape], wanted: Mapping[str, Shape]) -> WeightsFit:
    """Hold names and shapes of a file against those of a model."""
    missing = tuple(name for name in wanted if name not in given and not name.endswith(HARMLESS))
    unexpected = tuple(name for name in given if name not in wanted)
    misshapen = tuple(
        (name, given[name], wanted[name]) for name in given if name in wanted and given[name] != wanted[name]
    )
    return WeightsFit(missing, unexpected, misshapen)


def closest(name: str, others: Collection[str]) -> str:
    """What may have been meant; "" if nothing is near."""
    last = name.rsplit(".", 2)[-2:]
    alike = [other for other in others if other.rsplit(".", 2)[-2:] == last] or list(others)
    near = difflib.get_close_matches(name, alike[:500], 1, 0.5)
    return near[0] if near else ""


def differences(found: WeightsFit) -> list[Text]:
    """One line for each name that does not fit, the first few of each kind, with what was probably meant."""
    lines = []
    for title, names, others in (
        (Text("missing in the file", "文件中缺少"), found.missing, found.unexpected),
        (Text("not in the model", "模型中没有"), found.unexpected, found.missing),
    ):
        for name in names[:SHOWN]:
            near = closest(name, others)
            closest_name = Text(f" (closest: {near})", f"（最接近：{near}）") if near else NOTHING
            lines.append(Text(f"{title.en}: {name}{closest_name.en}", f"{title.zh}：{name}{closest_name.zh}"))
        rest = len(names) - SHOWN
        lines += [Text(f"{title.en}: and {rest} more", f"{title.zh}：另有 {rest} 个")] if rest > 0 else []
    shown = found.misshapen[:SHOWN]
    lines += [
        Text(
            f"shape mismatch: {name} is {_x(given)} in the file, {_x(wanted)} in the model",
            f"形状不符：{name} 在文件中为 {_x(given)}，在模型中为 {_x(wanted)}",
        )
        for name, given, wanted in shown
    ]
    rest = len(found.misshapen) - len(shown)
    return lines + ([Text(f"shape mismatch: and {rest} more", f"形状不符：另有 {rest} 个")] if rest else [])
