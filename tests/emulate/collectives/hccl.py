"""HCCL and the runtime below it, as C sees them: bound with ctypes, without PyTorch."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# HcclDataType; bfloat16, which NumPy lacks, is kept in uint16.
TYPES = {
    "int8": 0,
    "int16": 1,
    "int32": 2,
    "float16": 3,
    "float32": 4,
    "int64": 5,
    "uint64": 6,
    "uint8": 7,
    "uint16": 8,
    "uint32": 9,
    "float64": 10,
    "bfloat16": 11,
    "float8-e4m3": 15,
}
OPS = {"sum": 0, "prod": 1, "max": 2, "min": 3}
PARA, PTR, NOT_SUPPORT, TIMEOUT, TCP_CONNECT, REMOTE, SUSPENDING = 1, 2, 5, 9, 11, 21, 22
STREAM_TIMEOUT, STREAM_EXCEPTION = 507048, 507049  # of the runtime, when it waits for a stream
ROOT_INFO_BYTES = 4108
_MEMORY = 1 << 32


class HcclError(Exception):
    """What a function answered, and the text with it."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text


@contextmanager
def raises(code: int, *texts: str) -> Iterator[None]:
    """What is in it fails with this code, and all of these in its text."""
    try:
        yield
    except HcclError as error:
        assert error.code == code, error
        assert all(text in error.text for text in texts), error
    else:
        raise AssertionError(f"nothing has failed, but should with {code}")


class _Item(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("count", ctypes.c_uint64),
        ("type", ctypes.c_int),
        ("peer", ctypes.c_uint32),
    )


class _Config(ctypes.Structure):
    """The beginning of HcclCommConfig, as HcclCommConfigInit leaves it."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("magic", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("reserved", ctypes.c_uint64),
        ("buffer_size", ctypes.c_uint32),
        ("deterministic", ctypes.c_uint32),
        ("name", ctypes.c_char * 128),
    )


def _config(name: str) -> _Config:
    return _Config(ctypes.sizeof(_Config), 0xF0F0F0F0, 10, 0, 0xFFFFFFFF, 0xFFFFFFFF, name.encode())


class Libraries:
    """The emulated libraries of this process, with these devices."""

    def __init__(self, folder: Path, devices: int = 4, card: str = "Ascend910B1") -> None:
        self._runtime, self._hccl = (
            ctypes.CDLL(str(folder / name), os.RTLD_GLOBAL) for name in ("libascendcl.so", "libhccl.so")
        )
        self._runtime.aclGetRecentErrMsg.restype = ctypes.c_char_p
        self._hccl.HcclGetErrorString.restype = ctypes.c_char_p
        configure = self._runtime.torchferry_configure
        configure.argtypes = (ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p)
        configure(devices, _MEMORY, card.encode())
        self._runtime.aclInit(None)

    def use_device(self, device: int) -> None:
        """Of this thread."""
        self.runtime("aclrtSetDevice", device)

    def runtime(self, name: str, *arguments: object) -> None:
        """Call a function of the runtime; raises what it answers."""
        self._raise(getattr(self._runtime, name)(*arguments))

    def hccl(self, name: str, *arguments: object) -> None:
        """Call a function of HCCL; raises what it answers."""
        self._raise(getattr(self._hccl, name)(*arguments))

    def error_string(self, code: int) -> str:
        """What HCCL calls this result."""
        text: bytes = self._hccl.HcclGetErrorString(code)
        return text.decode()

    def stream(self) -> Stream:
        """A new one, of this thread's device."""
        handle = ctypes.c_void_p()
        self.runtime("aclrtCreateStream", ctypes.byref(handle))
        return Stream(self, handle)

    def root_info(self) -> bytes:
        """For all ranks of one communicator; this process is to be one of them."""
        info = (ctypes.c_char * ROOT_INFO_BYTES)()
        self.hccl("HcclGetRootInfo", info)
        return info.raw

    def communicator(self, info: bytes, ranks: int, rank: int, name: str = "") -> Communicator:
        """With all others of this root info."""
        handle = ctypes.c_void_p()
        root = ctypes.create_string_buffer(info, ROOT_INFO_BYTES)
        if name:
            config = ctypes.byref(_config(name))
            self.hccl("HcclCommInitRootInfoConfig", ranks, root, rank, config, ctypes.byref(handle))
        else:
            self.hccl("HcclCommInitRootInfo", ranks, root, rank, ctypes.byref(handle))
        return Communicator(self, handle, self.stream())

    def communicators_of_table(self, table: Path, rank: int) -> Communicator:
        """With all others of this rank table."""
        handle = ctypes.c_void_p()
        self.hccl("HcclCommInitClusterInfo", str(table).encode(), rank, ctypes.byref(handle))
        return Communicator(self, handle, self.stream())

    def communicators_of_devices(self, devices: Sequence[int]) -> list[Communicator]:
        """One for each, in this process."""
        handles = (ctypes.c_void_p * len(devices))()
        self.hccl("HcclCommInitAll", len(devices), (ctypes.c_int32 * len(devices))(*devices), handles)
        return [Communicator(self, ctypes.c_void_p(handle), self.stream()) for handle in handles]

    def _raise(self, code: int) -> None:
        if code != 0:
            text: bytes = self._runtime.aclGetRecentErrMsg()
            raise HcclError(code, text.decode())


@dataclass
class Stream:
    """A queue of work."""

    libraries: Libraries
    handle: ctypes.c_void_p

    def wait(self) -> None:
        """Until all is done; raises what the work has failed with."""
        self.libraries.runtime("aclrtSynchronizeStream", self.handle)


@dataclass
class Message:
    """One of a batch: to or from a peer."""

    array: Array
    peer: int
    sends: bool
    type: str = "float32"


@dataclass
class Communicator:
    """One rank's. Its functions wait for the stream, unless they are told which."""

    libraries: Libraries
    handle: ctypes.c_void_p
    stream: Stream

    def call(self, name: str, *arguments: object, stream: Stream | None = None) -> None:
        """Arrays become addresses, numbers 64 bits; the communicator and the stream come last."""
        used = stream or self.stream
        self.libraries.hccl(name, *map(_c, arguments), self.handle, used.handle)
        if stream is None:
            used.wait()

    def all_reduce(
        self, sent: Array, out: Array, type_: str, op: str = "sum", stream: Stream | None = None
    ) -> None:
        self.call("HcclAllReduce", sent, out, sent.size, TYPES[type_], OPS[op], stream=stream)

    def send(self, array: Array, peer: int, type_: str = "float32", stream: Stream | None = None) -> None:
        self.call("HcclSend", array, array.size, TYPES[type_], peer, stream=stream)

    def receive(self, array: Array, peer: int, type_: str = "float32", stream: Stream | None = None) -> None:
        self.call("HcclRecv", array, array.size, TYPES[type_], peer, stream=stream)

    def batch(self, messages: Sequence[Message]) -> None:
        items = (_Item * len(messages))(
            *(
                _Item(int(not one.sends), one.array.ctypes.data, one.array.size, TYPES[one.type], one.peer)
                for one in messages
            )
        )
        self.libraries.hccl("HcclBatchSendRecv", items, len(messages), self.handle, self.stream.handle)
        self.stream.wait()

    def barrier(self) -> None:
        self.call("HcclBarrier")

    def number(self, function: str) -> int:
        value = ctypes.c_uint32(0)
        self.libraries.hccl(function, self.handle, ctypes.byref(value))
        return value.value

    def name(self) -> str:
        text = (ctypes.c_char * 128)()
        self.libraries.hccl("HcclGetCommName", self.handle, text)
        return text.value.decode()

    def split(self, ranks: Sequence[int], number: int, rank: int) -> Communicator:
        handle = ctypes.c_void_p()
        members = (ctypes.c_uint32 * len(ranks))(*ranks)
        self.libraries.hccl(
            "HcclCreateSubCommConfig",
            ctypes.byref(self.handle),
            len(ranks),
            members,
            ctypes.c_uint64(number),
            rank,
            ctypes.byref(_config("")),
            ctypes.byref(handle),
        )
        return Communicator(self.libraries, handle, self.libraries.stream())

    def destroy(self) -> None:
        self.libraries.hccl("HcclCommDestroy", self.handle)


def _c(value: object) -> object:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    return ctypes.c_uint64(value) if isinstance(value, int) else value
