"""Reads a pickle without running it: no name is looked up, nothing is called, tensors are described.

Python's own unpickler, in the form that is written in Python, with every operation replaced that would look up a name
or call what was found. (The one written in C can be made to claim memory by a number in the file.)
"""

from __future__ import annotations

import itertools
import pickle
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from io import RawIOBase
from typing import IO, Any, ClassVar

from torchferry.checkpoint import classes
from torchferry.checkpoint.model import (
    DTENSOR,
    LOCAL_PART,
    Global,
    Known,
    Opaque,
    Ordered,
    Storage,
    StoragePlace,
    TensorEntry,
)
from torchferry.checkpoint.names import parts

STORAGE_DTYPES: Mapping[str, str] = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128", "QInt8Storage": "qint8", "QUInt8Storage": "quint8",
    "QInt32Storage": "qint32", "UntypedStorage": "uint8",
}  # fmt: skip
_OLD_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg"}
_KNOWN = ("torch.Size", "torch.device")
_GETATTR = Global("builtins", "getattr")
# A file of a few bytes can ask for more work and memory than there is; no checkpoint comes near these.
_LONGEST_PICKLE = 2**30
_LONGEST_LINE = 2**24
_MOST_STEPS = 5_000_000
_LARGEST_KEY = 1000
_LARGEST = 2**62
_MOST_DIMENSIONS = 64
_NEARBY = 64
_MOST_MADE = 4  # of what calls may make, in the size of the pickle: what is made of it once or twice is in it
_LEAST_MADE = 2**20
_SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset)


class Bounded:
    """A stream that never claims more memory than what is left of it."""

    def __init__(self, stream: IO[bytes] | RawIOBase, size: int) -> None:
        self._stream, self._left = stream, min(size, _LONGEST_PICKLE)
        self.size = self._left

    def read(self, count: int) -> bytes:
        if count > self._left:
            raise EOFError("cut short")
        return self._took(self._stream.read(count) or b"")

    def readline(self) -> bytes:
        return self._took(self._stream.readline(min(self._left, _LONGEST_LINE)))

    def _took(self, data: bytes) -> bytes:
        self._left -= len(data)
        return data


class _Counted(dict[int, Callable[[Any], None]]):
    """The operations of a pickle, of which there may be so many."""

    left = _MOST_STEPS

    def __getitem__(self, operation: int) -> Callable[[Any], None]:
        self.left -= 1
        if self.left < 0:
            raise pickle.UnpicklingError(f"more than {_MOST_STEPS:,} steps")
        return super().__getitem__(operation)


class Reader(pickle._Unpickler):
    """Reads one pickle; `globals` and `storages` are what it asked for."""

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(pickle._Unpickler.dispatch)
    stack: list[Any]
    memo: dict[int, Any]

    def __init__(self, stream: Bounded, prefix: str = "") -> None:
        super().__init__(stream, encoding="utf-8", errors="surrogateescape")
        self.dispatch = _Counted(type(self).dispatch)  # type: ignore[misc]
        self._prefix = prefix  # of the names of storages
        self.globals: dict[Global, None] = {}
        self.storages: dict[str, Storage] = {}
        self.places: dict[str, StoragePlace] = {}  # of arrays, whose bytes are in the pickle
        self._inner_names = self._other_getattrs = 0
        self._may_make = max(_LEAST_MADE, _MOST_MADE * stream.size)

    def find_class(self, module: str, name: str) -> Any:
        found = Global(_OLD_MODULES.get(module, module), name)
        self.globals[found] = None
        return found

    def get_extension(self, code: int) -> None:
        raise pickle.UnpicklingError(
            "it uses extension codes, which mean nothing outside the program that saved it"
        )

    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, tuple) and pid and _text(pid[0]) == "module":  # old files: a class and its source
            return pid[1]
        if not isinstance(pid, tuple) or len(pid) < 5 or _text(pid[0]) != "storage":
            raise pickle.UnpicklingError("it refers to something outside that is no storage")
        _, kind, key, device, elements, *view = pid
        dtype = STORAGE_DTYPES.get(kind.name, "") if isinstance(kind, Global) else ""
        root = Storage(self._prefix + _text(key), dtype, _text(device), _count(elements))
        self.storages[root.key] = root
        if view and view[0] is not None:
            _, first, count = view[0]
            return Storage(root.key, dtype, root.device, _count(count), _count(first))
        return root

    def _charge(self, arguments: Any) -> None:
        """Calls make new things of old ones, again and again of the same: a few bytes would fill the memory."""
        self._may_make -= sum(len(each) for each in (arguments, *arguments) if isinstance(each, _SIZED))
        if self._may_make < 0:
            raise pickle.UnpicklingError("it asks for far more memory than it has bytes")

    def _call(self, function: object, arguments: Any) -> object:
        if not isinstance(function, Global):
            raise pickle.UnpicklingError("it calls something that is no name")
        self._charge(arguments)
        if function.dotted in classes.FROM_BUFFER:
            found = classes.from_buffer(tuple(arguments), self._next_array())
            if found is not None:
                return self._kept(*found)
        if function == _GETATTR:
            outer, name = arguments if len(arguments) == 2 else (None, None)
            if isinstance(outer, Global) and isinstance(name, str) and name.isidentifier() and name[0] != "_":
                self._inner_names += 1  # what a class has, asked for in two steps
                return self.find_class(outer.module, f"{outer.name}.{name}")
            self._other_getattrs += 1
        return made(function, tuple(arguments))

    def load(self) -> Any:
        tree = super().load()
        if self._inner_names and not self._other_getattrs:
            self.globals.pop(_GETATTR, None)  # it named what a class has, as pickles before protocol 4 must
        return tree

    def _next_array(self) -> str:
        return f"{self._prefix}array/{len(self.places)}"

    def _kept(self, tensor: TensorEntry, data: bytes) -> TensorEntry:
        self.places[tensor.storage.key] = StoragePlace(len(data), data=data)
        return tensor

    def _instantiate(self, klass: object, args: Any) -> None:
        self.stack.append(self._call(klass, args))

    def load_reduce(self) -> None:
        arguments = self.stack.pop()
        self.stack[-1] = self._call(self.stack[-1], arguments)

    load_newobj = load_reduce

    def load_newobj_ex(self) -> None:
        named = self.stack.pop()
        arguments = self.stack.pop()
        self.stack[-1] = self._call(self.stack[-1], (*arguments, named))

    def load_build(self) -> None:
        state = self.stack.pop()
        built = self.stack[-1]
        if isinstance(built, Opaque):
            built.state = state
            if built.class_name in classes.RECONSTRUCT:
                self._charge(state if isinstance(state, tuple) else ())
                found = classes.rebuilt(state, self._next_array())
                if found is not None:
                    # The finished array takes the place of the empty one: on the stack, and where it may be asked for.
                    self.stack[-1] = self._kept(*found)
                    nearby = itertools.islice(reversed(self.memo.items()), _NEARBY)
                    place = next((place for place, held in nearby if held is built), None)
                    if place is not None:
                        self.memo[place] = self.stack[-1]
        elif isinstance(built, Ordered) and isinstance(state, dict):
            built.metadata = state.get("_metadata")

    def load_bytearray8(self) -> None:
        (size,) = struct.unpack("<Q", self.read(8))  # type: ignore[attr-defined]
        self.stack.append(bytearray(self.read(size)))  # type: ignore[attr-defined]  # Python claims the memory first

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.stack[-1][_key(key)] = value

    def load_setitems(self) -> None:
        items = self.pop_mark()  # type: ignore[attr-defined]
        target = self.stack[-1]
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[_key(key)] = value

    def load_dict(self) -> None:
        items = self.pop_mark()  # type: ignore[attr-defined]
        self.stack.append({_key(key): value for key, value in zip(items[::2], items[1::2], strict=True)})

    def load_additems(self) -> None:
        for item in self.pop_mark():  # type: ignore[attr-defined]
            self.stack[-1].add(_key(item))

    def load_frozenset(self) -> None:
        self.stack.append(frozenset(map(_key, self.pop_mark())))  # type: ignore[attr-defined]

    dispatch[pickle.BYTEARRAY8[0]] = load_bytearray8
    dispatch[pickle.SETITEM[0]] = load_setitem
    dispatch[pickle.SETITEMS[0]] = load_setitems
    dispatch[pickle.DICT[0]] = load_dict
    dispatch[pickle.ADDITEMS[0]] = load_additems
    dispatch[pickle.FROZENSET[0]] = load_frozenset
    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.NEWOBJ[0]] = load_newobj
    dispatch[pickle.NEWOBJ_EX[0]] = load_newobj_ex
    dispatch[pickle.BUILD[0]] = load_build


def made(function: Global, arguments: tuple[Any, ...]) -> object:
    """What a call would make: a description for what PyTorch saves, else an object that is only named."""
    maker = _MAKERS.get(function.dotted)
    if maker is not None:
        return maker(*arguments)
    if function.dotted in _KNOWN:
        return Known(function.dotted, arguments)
    if function.dotted in classes.SCALAR:
        return classes.number(arguments) or Opaque(function.dotted, arguments)
    # The plugins of devices have functions of their own beside those of PyTorch, with the same first arguments.
    if function.module.startswith("torch") and function.name.startswith("_rebuild_") and arguments:
        rebuilt = _rebuilt(function, arguments)
        if rebuilt is not None:
            return rebuilt
    return Opaque(function.dotted, arguments)


def _rebuilt(function: Global, arguments: tuple[Any, ...]) -> TensorEntry | Opaque | None:
    first = arguments[0]
    if isinstance(first, Storage):
        return _tensor(function, first, *arguments[1:])
    if isinstance(first, TensorEntry):
        if function.name.startswith("_rebuild_parameter"):
            return first.as_parameter(bool(arguments[1]) if len(arguments) > 1 else True)
        # Devices outside PyTorch: the numbers as an array or a tensor of the CPU, then dtype, device, gradient.
        if len(arguments) == 4 and isinstance(arguments[1], Global) and arguments[1].name == first.dtype:
            return replace(
                first, device=_text(arguments[2]), is_array=False, requires_grad=bool(arguments[3])
            )
    if function.name == "_rebuild_meta_tensor_no_storage" and isinstance(first, Global):
        storage = Storage("", first.name, "meta", 0)
        return _tensor(function, storage, 0, arguments[1], arguments[2], arguments[3])
    if function.name == "_rebuild_from_type_v2" and isinstance(first, Global):
        if first.name == "_rebuild_wrapper_subclass":
            return _local_part(*arguments[2:])
        inner = made(first, tuple(arguments[2]))
        return inner if isinstance(inner, TensorEntry) else None
    return None


def _local_part(about: Any, state: Any) -> TensorEntry | Opaque | None:
    """What one process holds of a distributed tensor: all of it, or a part that is no tensor of the model."""
    attributes = state[1] if isinstance(state, tuple) else state
    local = attributes.get(LOCAL_PART) if isinstance(attributes, dict) else None
    if not isinstance(local, TensorEntry):
        return None
    shape = tuple(map(_count, _sizes(about[2])))
    spec = attributes.get("_spec")
    placements = parts(spec).get("placements")
    is_sum = any(
        isinstance(each, Opaque) and "Partial" in each.class_name for each in parts(placements).values()
    )
    return local if shape == local.shape and not is_sum else Opaque(DTENSOR, (shape,), {LOCAL_PART: local})


def _tensor(
    function: Global, storage: Storage, offset: int, shape: Any, strides: Any, *others: Any
) -> TensorEntry:
    shape, strides = tuple(map(_count, _sizes(shape))), tuple(map(_count, _sizes(strides)))
    if len(shape) != len(strides) or len(shape) > _MOST_DIMENSIONS:
        raise pickle.UnpicklingError("a tensor's shape and strides don't fit each other")
    dtype = others[2] if function.name == "_rebuild_tensor_v3" else None
    return TensorEntry(
        storage,
        dtype.name if isinstance(dtype, Global) else storage.dtype,
        shape,
        strides,
        _count(offset),
        storage.device,
        requires_grad=bool(others and others[0] is True),
        is_plain="qtensor" not in function.name,
    )


def _sizes(shape: Any) -> Any:
    return shape.arguments[0] if isinstance(shape, Known) else shape


def _count(value: Any) -> int:
    count = int(value)
    if not 0 <= count < _LARGEST:
        raise pickle.UnpicklingError("a size or an offset that no tensor has")
    return count


def _key(key: Any) -> Any:
    """A key that is no tower of tuples: to compare such a one takes for ever."""
    pending, seen = [key], 0
    while pending:
        node = pending.pop()
        inside = node.arguments if isinstance(node, Known) else node
        if isinstance(inside, (tuple, frozenset)):
            seen += len(inside)
            if seen > _LARGEST_KEY:
                raise pickle.UnpicklingError("a key that is too large")
            pending.extend(inside)
    return key


_MAKERS: Mapping[str, Callable[..., object]] = {
    "collections.OrderedDict": lambda pairs=(): Ordered((_key(key), value) for key, value in pairs),
    "builtins.set": lambda items=(): set(map(_key, items)),
    "builtins.frozenset": lambda items=(): frozenset(map(_key, items)),
    "builtins.complex": lambda real, imaginary: complex(real, imaginary),
    "builtins.bytearray": lambda *data: (
        bytearray(data[0]) if data and isinstance(data[0], bytes) else bytearray()
    ),
    "_codecs.encode": lambda text, encoding: text.encode(
        "latin-1" if encoding in ("latin1", "latin-1") else "utf-8"
    ),
}


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
