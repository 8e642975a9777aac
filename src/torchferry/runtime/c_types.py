"""Lets attributes and the constructor of a type that is written in C be replaced, and put back.

`torch.device("cuda")` has to give the vendor's device wherever it is written, and `torch.device` has to stay the
type of every device: torch.compile, TorchScript and pickles know it by identity. So its constructor is replaced
inside the type, not the type under its name. CPython forbids that for types written in C by a flag; the flag is
lifted for the moment of the change. Where the flag and the constructor lie is checked before anything is written.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torchferry.errors import RunError
from torchferry.text import Text

_WORD = ctypes.sizeof(ctypes.c_void_p)
_FLAGS_AT = 21 * _WORD  # PyTypeObject.tp_flags
_NEW_AT = 39 * _WORD  # PyTypeObject.tp_new
_IMMUTABLE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE

_Constructor = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.py_object)


def is_written_in_c(owner: object) -> bool:
    """Whether attributes of this type can't be set as others are."""
    return isinstance(owner, type) and bool(owner.__flags__ & _IMMUTABLE)


def set_attribute(owner: type, name: str, value: object) -> None:
    """Set an attribute of a type written in C."""
    with _writable(owner):
        setattr(owner, name, value)


def delete_attribute(owner: type, name: str) -> None:
    """Delete an attribute that was added to a type written in C."""
    with _writable(owner):
        delattr(owner, name)


class Constructor:
    """The constructor of a type written in C: replaced by a function, called, put back."""

    def __init__(self, owner: type) -> None:
        _check_layout(owner)
        self._owner = owner
        self._slot = _word(owner, _NEW_AT).value
        self._original = _Constructor(self._slot)
        self._attribute: Any = vars(owner)["__new__"]

    def original(self, cls: type, args: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        """Make an instance as the type does by itself."""
        return self._original(cls, args, settings)

    def replace(self, function: Callable[..., Any]) -> None:
        """Let a function(cls, *args, **settings) make the instances."""
        set_attribute(self._owner, "__new__", staticmethod(function))

    def restore(self) -> None:
        """Put the type's own constructor back."""
        set_attribute(self._owner, "__new__", self._attribute)
        # Setting the attribute alone leaves the slot on Python's way to __new__, which then refuses.
        _word(self._owner, _NEW_AT).value = self._slot
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(self._owner))


@contextmanager
def _writable(owner: type) -> Iterator[None]:
    _check_layout(owner)
    flags = _word(owner, _FLAGS_AT)
    immutable = flags.value & _IMMUTABLE
    flags.value &= ~_IMMUTABLE
    try:
        yield
    finally:
        flags.value |= immutable


def _word(owner: type, offset: int) -> ctypes.c_size_t:
    return ctypes.c_size_t.from_address(id(owner) + offset)


class _Plain:
    pass


class _Constructed:
    def __new__(cls) -> _Constructed:
        return super().__new__(cls)


class _ConstructedToo:
    def __new__(cls) -> _ConstructedToo:
        return super().__new__(cls)


def _check_layout(owner: type) -> None:
    """Python itself says what must be found at the two places; any other interpreter is refused."""
    flags_are_there = all(
        _word(cls, _FLAGS_AT).value == cls.__flags__ for cls in (owner, int, _Plain, _Constructed)
    )
    plain, inherited = _word(object, _NEW_AT).value, _word(_Plain, _NEW_AT).value
    constructed, too = _word(_Constructed, _NEW_AT).value, _word(_ConstructedToo, _NEW_AT).value
    constructor_is_there = plain == inherited != constructed == too
    if not (flags_are_there and constructor_is_there):
        raise RunError(
            Text(
                "this Python interpreter lays out its types in an unknown way; run the program with CPython 3.10 "
                "to 3.14, or convert its source",
                "当前 Python 解释器的类型布局未知；请用 CPython 3.10 至 3.14 运行程序，或转换其源代码",
            )
        )
