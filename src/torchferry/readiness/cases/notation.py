"""The notation of the command line for an operator's arguments, read and written: 10x20:int64, dim=1, list(2x3, 2x3).

Imports no torch.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from torchferry.errors import InputError
from torchferry.readiness.cases.model import (
    Case,
    CaseValue,
    Draw,
    TensorContents,
    TensorInput,
    contiguous,
    tensors_in,
)
from torchferry.readiness.model import Special
from torchferry.text import Text, did_you_mean, then

# PyTorch's dtypes by name: which sort each is, and its other names.

_ALIASES = {
    "float": "float32", "double": "float64", "half": "float16", "fp32": "float32", "fp64": "float64",
    "fp16": "float16", "bf16": "bfloat16", "long": "int64", "int": "int32", "short": "int16",
    "cfloat": "complex64", "cdouble": "complex128", "chalf": "complex32",
}  # fmt: skip
FLOATS = ("float32", "float64", "float16", "bfloat16")
SMALL_FLOATS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
COMPLEX = ("complex64", "complex128", "complex32")
SIGNED = ("int64", "int32", "int16", "int8")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
ALL = (*FLOATS, *SMALL_FLOATS, *COMPLEX, *SIGNED, *UNSIGNED, "bool")


def dtype_name(text: str) -> str:
    """The name of a dtype as PyTorch prints it, without `torch.`; "" if there is none."""
    short = text.removeprefix("torch.")
    name = _ALIASES.get(short, short)
    return name if name in ALL else ""


def is_floating(name: str) -> bool:
    """Whether it holds fractions; complex ones do."""
    return name in FLOATS or name in SMALL_FLOATS or name in COMPLEX


# How a tensor may lie in its memory, by the names that users give.

Stride = tuple[int, ...]


def _transposed(shape: Stride) -> Stride:
    swapped = contiguous((*shape[:-2], shape[-1], shape[-2]))
    return (*swapped[:-2], swapped[-1], swapped[-2])


def _channels_last(shape: Stride) -> Stride:
    """The second dimension is the innermost one."""
    moved = contiguous((shape[0], *shape[2:], shape[1]))
    return (moved[0], moved[-1], *moved[1:-1])


# name -> (how, the smallest and the largest number of dimensions)
_BY_NAME: dict[str, tuple[Callable[[Stride], Stride], int, int]] = {
    "contiguous": (contiguous, 0, 64),
    "transposed": (_transposed, 2, 64),
    "channels_last": (_channels_last, 4, 4),
    "channels_last_3d": (_channels_last, 5, 5),
    "expanded": (lambda shape: (0, *contiguous(shape[1:])), 1, 64),  # one row, repeated
    "sliced": (lambda shape: tuple(2 * step for step in contiguous(shape)), 1, 64),  # every second element
}
LAYOUTS = (*_BY_NAME, "strides", "offset")


def laid_out(tensor: TensorInput, layout: str, text: str) -> TensorInput:
    """The tensor in a layout: transposed, strides(1,20), offset(3); `text` is for errors."""
    name, _, inner = layout.partition("(")
    words = [word.strip() for word in inner.rstrip(")").split(",") if word.strip()]
    if not all(re.fullmatch(r"\d+", word) for word in words):
        raise InputError(
            Text(
                f"--input {text}: ({inner} are not numbers of elements; write for example strides(1,20)",
                f"--input {text}：({inner} 不是元素个数；请写成例如 strides(1,20)",
            )
        )
    numbers = list(map(int, words))
    if name == "offset":
        if len(numbers) != 1:
            raise InputError(
                Text(
                    f"--input {text}: offset takes one number, as in offset(3)",
                    f"--input {text}：offset 只接受一个数，例如 offset(3)",
                )
            )
        return replace(tensor, offset=numbers[0])
    if name == "strides":
        if len(numbers) != len(tensor.shape):
            raise InputError(
                Text(
                    f"--input {text}: strides needs a number for each of the {len(tensor.shape)} dimensions",
                    f"--input {text}：strides 需要为 {len(tensor.shape)} 个维度各给出一个数",
                )
            )
        return replace(tensor, stride=tuple(numbers))
    how, fewest, most = _BY_NAME[name]
    if not fewest <= len(tensor.shape) <= most:
        raise InputError(
            Text(
                f"--input {text}: a tensor of {len(tensor.shape)} dimensions can't be {name}",
                f"--input {text}：{len(tensor.shape)} 维张量不能为 {name}",
            )
        )
    return replace(tensor, stride=None if name == "contiguous" else how(tensor.shape))


def same_order(stride: Stride, shape: Stride) -> Stride:
    """Strides for another size that keep the order of the dimensions in memory, and repeat where these do."""
    inner_first = sorted(
        range(len(shape)), key=lambda dim: (stride[dim], -dim) if stride[dim] else (math.inf, -dim)
    )
    steps, step = [0] * len(shape), 1
    for dim in inner_first:
        if stride[dim]:
            steps[dim] = step
            step *= max(shape[dim], 1)
    return tuple(steps)


_NAME = re.compile(r"([A-Za-z_]\w*)=(?!=)(.*)", re.DOTALL)
_SHAPE = re.compile(r"\d+(?:x\d+)+|\d+x|scalar")
_DRAW = re.compile(r"([a-z]+)(?:\((.*)\))?((?:\+-?[a-z]+)*)", re.DOTALL)
_MEMORY_FORMATS = ("channels_last", "channels_last_3d", "contiguous_format", "preserve_format")
_SPECIAL_VALUES = ("nan", "inf", "-inf")
_DRAWS = {
    "normal": TensorContents(Draw.NORMAL),
    "uniform": TensorContents(Draw.UNIFORM),
    "ints": TensorContents(Draw.INTS, -10, 10),
    "ones": TensorContents(Draw.FULL, 1),
    "zeros": TensorContents(Draw.FULL, 0),
    "nan": TensorContents(Draw.FULL, float("nan")),
    "inf": TensorContents(Draw.FULL, float("inf")),
    "full": TensorContents(Draw.FULL, 1),
    "arange": TensorContents(Draw.ARANGE),
}
_HOW = Text(
    "write SHAPE[:DTYPE][:DISTRIBUTION][:LAYOUT], such as 10x20:float16:uniform(0,1):transposed, or a Python value",
    "请写成 SHAPE[:DTYPE][:DISTRIBUTION][:LAYOUT]（如 10x20:float16:uniform(0,1):transposed）或 Python 值",
)


def parse_input(text: str) -> tuple[str, CaseValue]:
    """One argument: its name, "" if it has none, and its value."""
    named = _NAME.fullmatch(text.strip())
    if named and not text.lstrip().startswith(("list(", "'", '"')):
        return named[1], parse_value(named[2])
    return "", parse_value(text)


def parse_inputs(texts: Sequence[str]) -> list[tuple[str, CaseValue]]:
    """All arguments of an operator; no name is given twice."""
    pairs = [parse_input(text) for text in texts]
    _check_names(pairs, "--input")
    return pairs


def parse_init(text: str) -> list[tuple[str, CaseValue]]:
    """The arguments of a class, divided by commas: in_channels=16,out_channels=32. What has no name is named by its position."""
    try:
        pairs = [parse_input(part) for part in split(text, ",") if part.strip()]
    except InputError as error:
        raise InputError(
            *(Text(*(said.replace("--input", "--init", 1) for said in text)) for text in error.texts)
        ) from None
    _check_names(pairs, "--init")
    first_named = next((position for position, (name, _) in enumerate(pairs) if name), len(pairs))
    if any(not name for name, _ in pairs[first_named:]):
        raise InputError(
            Text(
                f"--init {text}: a positional value comes before the first name=value; give names to all",
                f"--init {text}：name=value 之前有位置参数；请为所有值写明名称",
            )
        )
    pairs = [(name or str(position), value) for position, (name, value) in enumerate(pairs)]
    for name, value in pairs:
        if any(tensors_in(value)):
            raise InputError(
                Text(
                    f"--init {text}: `{name}` is a tensor; the arguments of a class must be plain values",
                    f"--init {text}：`{name}` 是张量；类的参数只能是普通值",
                )
            )
    return pairs


def _check_names(pairs: list[tuple[str, CaseValue]], option: str) -> None:
    names = [name for name, _ in pairs if name]
    twice = next((name for position, name in enumerate(names) if name in names[:position]), "")
    if twice:
        raise InputError(
            Text(
                f"{option}: `{twice}` is given twice; leave one out",
                f"{option}：`{twice}` 给出了两次；请去掉一个",
            )
        )


def parse_value(text: str) -> CaseValue:
    """A tensor, a list of tensors, or a Python value."""
    text = text.strip()
    if text.startswith("list(") and text.endswith(")"):
        return tuple(parse_value(part) for part in split(text[5:-1], ",") if part.strip())
    parts = [part.strip() for part in split(text, ":")]
    if _SHAPE.fullmatch(parts[0]) or (len(parts) > 1 and parts[0].isdecimal()):
        return _tensor(text, parts)
    return _plain(text)


def split(text: str, separator: str) -> list[str]:
    """The parts between separators that are in no bracket and no quotes."""
    parts, depth, quote, begin = [], 0, "", 0
    for position, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == separator and depth == 0:
            parts.append(text[begin:position])
            begin = position + 1
    return [*parts, text[begin:]]


def _tensor(text: str, parts: list[str]) -> TensorInput:
    shape = () if parts[0] == "scalar" else tuple(int(size) for size in parts[0].split("x") if size)
    dtype, contents, layouts = "", None, []
    for part in parts[1:]:
        draw = _DRAW.fullmatch(part)
        if not dtype and dtype_name(part):
            dtype = dtype_name(part)
        elif contents is None and draw and draw[1] in _DRAWS:
            contents = _contents(text, draw)
        elif part.partition("(")[0] in LAYOUTS:
            layouts.append(part)
        elif dtype_name(part) or (draw and draw[1] in _DRAWS):
            sort = Text("dtype", "数据类型") if dtype_name(part) else Text("distribution", "分布")
            raise InputError(
                Text(
                    "--input {text}: `{part}` is a second {sort}; a tensor has one",
                    "--input {text}：`{part}` 是第二个{sort}；张量只有一个",
                ).format(text=text, part=part, sort=sort)
            )
        else:
            unknown = Text(f"--input {text}: `{part}` is unknown", f"--input {text}：无法识别 `{part}`")
            raise InputError(then(unknown, _near(part)))
    tensor = TensorInput(dtype or "float32", shape, contents or TensorContents(Draw.DEFAULT))
    is_finite = tensor.contents.draw is not Draw.FULL or math.isfinite(tensor.contents.low)
    if not is_floating(tensor.dtype) and (tensor.contents.special or not is_finite):
        raise InputError(
            Text(
                f"--input {text}: {tensor.dtype} has no infinities and no NaN",
                f"--input {text}：{tensor.dtype} 没有无穷大和 NaN",
            )
        )
    for layout in layouts:
        tensor = laid_out(tensor, layout, text)
    return tensor


def _contents(text: str, draw: re.Match[str]) -> TensorContents:
    base = _DRAWS[draw[1]]
    inner = draw[2] or ""
    try:
        numbers = [float(part) for part in inner.split(",") if part.strip()]
    except ValueError:
        raise InputError(
            then(
                Text(f"--input {text}: ({inner}) are not numbers", f"--input {text}：({inner}) 不是数字"),
                _HOW,
            )
        ) from None
    wanted = {"uniform": (0, 2), "ints": (0, 2), "full": (1,)}.get(draw[1], (0,))
    if len(numbers) not in wanted:
        raise InputError(
            Text(
                f"--input {text}: {draw[1]} takes {' or '.join(map(str, wanted))} numbers",
                f"--input {text}：{draw[1]} 需要 {' 或 '.join(map(str, wanted))} 个数",
            )
        )
    low, high = [*numbers, *(base.low, base.high)[len(numbers) :]]
    if base.draw in (Draw.UNIFORM, Draw.INTS) and not low < high:
        raise InputError(
            Text(
                f"--input {text}: the first number of {draw[1]} must be less than the second",
                f"--input {text}：{draw[1]} 的第一个数必须小于第二个数",
            )
        )
    if not (math.isfinite(low) and math.isfinite(high)) and base.draw is not Draw.FULL:
        raise InputError(
            Text(
                f"--input {text}: the numbers of {draw[1]} must be finite",
                f"--input {text}：{draw[1]} 的数必须有限",
            )
        )
    are_whole = all(float(each).is_integer() and abs(each) < 1 << 63 for each in (low, high))
    if base.draw is Draw.INTS and not are_whole:
        raise InputError(
            Text(
                f"--input {text}: the numbers of ints must be integers below 2**63",
                f"--input {text}：ints 的数必须是小于 2**63 的整数",
            )
        )
    special = tuple(draw[3].split("+")[1:])
    for value in special:
        if value not in _SPECIAL_VALUES:
            raise InputError(
                Text(
                    f"--input {text}: +{value} is unknown; write +nan, +inf or +-inf",
                    f"--input {text}：+{value} 未知；请写 +nan、+inf 或 +-inf",
                )
            )
    return TensorContents(base.draw, low, high, special)


def _plain(text: str) -> CaseValue:
    try:
        return _frozen(ast.literal_eval(text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    if text in ("nan", "inf", "-inf"):
        return float(text)
    if text.startswith("torch.") and text.removeprefix("torch.") in _MEMORY_FORMATS:
        return Special("memory_format", text.removeprefix("torch."))
    if dtype_name(text):
        return Special("dtype", dtype_name(text))
    if text == "device":
        return Special("device", "")
    if re.fullmatch(r"[A-Za-z_]\w*", text):
        return text
    raise InputError(
        then(
            Text(f"--input {text}: neither a tensor nor a value", f"--input {text}：既不是张量也不是值"),
            _near(text),
        )
    )


def _frozen(value: object) -> CaseValue:
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    raise ValueError(value)


def _near(word: str) -> Text:
    near = difflib.get_close_matches(word.partition("(")[0], [*ALL, *_DRAWS, *LAYOUTS], 1)
    return then(did_you_mean([f"`{near[0]}`"]), _HOW) if near else _HOW


def described_call(case: Case) -> str:
    """A case as a call: aten::max.dim(8:int64:ints(-10,10), 0)."""
    made = f"({_listed((), case.init)})" if case.init else ""
    return f"{case.callee.name}{made}({_listed(case.args, case.kwargs)})"


def described(value: CaseValue) -> str:
    """An argument in the notation of the command line."""
    if isinstance(value, TensorInput):
        size = "x".join(map(str, value.shape)) or "scalar"
        strides = [f"strides({','.join(map(str, value.stride))})"] if value.stride is not None else []
        offset = [f"offset({value.offset})"] if value.offset else []
        return ":".join([size, value.dtype, *_described_contents(value.contents), *strides, *offset])
    if isinstance(value, Special):
        return value.kind if value.kind in ("device", "generator") else value.text
    if isinstance(value, tuple):
        items = ", ".join(map(described, value))
        return f"list({items})" if any(isinstance(item, TensorInput) for item in value) else f"[{items}]"
    return repr(value)


def _listed(args: tuple[CaseValue, ...], kwargs: tuple[tuple[str, CaseValue], ...]) -> str:
    named = [described(value) if name.isdigit() else f"{name}={described(value)}" for name, value in kwargs]
    return ", ".join([*map(described, args), *named])


def _described_contents(contents: TensorContents) -> list[str]:
    special = "".join(f"+{value}" for value in contents.special)
    if contents.draw is Draw.DEFAULT:
        return []
    if contents.draw in (Draw.UNIFORM, Draw.INTS):
        return [f"{contents.draw.value}({contents.low:g},{contents.high:g}){special}"]
    if contents.draw is Draw.FULL:
        return [f"full({contents.low:g}){special}"]
    if contents.draw is Draw.STORED:
        return [f"recorded({contents.key})"]
    return [contents.draw.value + special]
