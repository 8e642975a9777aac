"""A tensor's layout: dtype, shape, strides, device, and what follows from them for reading it; and which contents of
memory are known already."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any

import torch

from torchferry.accuracy.model import SIZES, KeptPart, Statistics, TensorRecord
from torchferry.accuracy.native.library import COMPONENTS, NUMBERS
from torchferry.observe.modes import unobserved
from torchferry.observe.operators import sizes_of, why_unreadable
from torchferry.readiness.cases.model import contiguous
from torchferry.sim import simulated


class TensorLayout:
    """The same object for all tensors that look the same."""

    def __init__(self, dtype: str, shape: tuple[int, ...], stride: tuple[int, ...], device: str) -> None:
        self.dtype = dtype
        self.shape = shape
        self.stride = stride
        self.device = device
        self.unread = ""
        self.on_host = False
        self.is_plain = False  # its bytes can be read where they are
        size = SIZES.get(dtype, 0)
        dimensions = [(n, step) for n, step in zip(shape, stride, strict=True) if n != 1 and (step or not n)]
        self.repeats = any(step == 0 and n > 1 for n, step in zip(shape, stride, strict=True))
        self.elements = math.prod(n for n, _ in dimensions)
        self.nbytes = self.elements * size
        self.code = NUMBERS.get(dtype, 0)  # what the native library calls the dtype
        self.numbers = self.elements * (2 if dtype in COMPONENTS else 1)
        self.is_dense = _is_dense(dimensions)
        self.has_marks = dtype.startswith("complex") or not self.is_dense  # may be conjugate or negative
        # from its first byte to its last; where it is dense, no byte in between is not its own
        last = sum((n - 1) * step for n, step in dimensions) if self.elements else -1
        self.extent = (last + 1) * size
        # what tells tensors apart that begin at the same address
        self.region: Hashable = (dtype, self.nbytes) if self.is_dense else (dtype, shape, stride)

    def record(self, name: str, role: str = "", unread: str = "") -> TensorRecord:
        """What a record says of a tensor of this name without its contents, and why those are not read."""
        return TensorRecord(
            name, self.dtype, self.shape, self.stride, self.device, role,
            is_dense=self.is_dense, unread=self.unread or unread,
        )  # fmt: skip


class Layouts:
    """The layouts of all tensors that were met. `on_host`: the types of devices whose memory is the host's;
    `by_index`: contents are read in the order of indices, so those of a transposed tensor are others."""

    def __init__(self, on_host: frozenset[str], *, by_index: bool = False) -> None:
        self._on_host = on_host
        self._by_index = by_index
        self._known: dict[Hashable, TensorLayout] = {}
        self._regions: dict[Hashable, int] = {}

    def of(self, tensor: torch.Tensor) -> TensorLayout:
        """The layout of a tensor of PyTorch's own type."""
        try:
            key = (tensor.dtype, tensor.shape, tensor.stride(), tensor.device)
            known = self._known.get(key)
        except (RuntimeError, NotImplementedError, TypeError):  # sparse, nested, with symbols for sizes
            return self._of_odd(tensor, why_unreadable(tensor) or _layout(tensor))
        if known is None:
            known = self._look(tensor, key)
        return self._marked(tensor, known) if known.has_marks and is_marked(tensor) else known

    def of_any(self, tensor: torch.Tensor) -> TensorLayout:
        """The layout of a tensor that may be of any type."""
        unread = why_unreadable(tensor)
        return self._of_odd(tensor, unread) if unread else self.of(tensor)

    def _look(self, tensor: torch.Tensor, key: tuple[Any, ...]) -> TensorLayout:
        if tensor.layout != torch.strided:
            return self._of_odd(tensor, _layout(tensor))
        dtype = str(tensor.dtype).removeprefix("torch.")
        found = TensorLayout(dtype, tuple(tensor.shape), tuple(tensor.stride()), str(tensor.device))
        found.on_host = tensor.device.type in self._on_host
        if dtype not in SIZES:
            found.unread = dtype
        elif tensor.device.type == "meta":
            found.unread = "meta"
        if self._by_index and not tensor.is_contiguous():
            found.region = (dtype, found.shape, found.stride)
        found.is_plain = found.on_host and found.is_dense and not found.has_marks
        found.region = self._regions.setdefault(found.region, len(self._regions))  # quicker to compare
        self._known[key] = found
        return found

    def _marked(self, tensor: torch.Tensor, plain: TensorLayout) -> TensorLayout:
        """Of one that holds other values than the same memory without marks: it is read in the order of its indices."""
        key = (plain, tensor.is_conj(), tensor.is_neg())
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = TensorLayout(plain.dtype, plain.shape, plain.stride, plain.device)
            known.on_host, known.unread, known.is_dense = plain.on_host, plain.unread, False
            known.region = self._regions.setdefault(key, len(self._regions))
        return known

    def _of_odd(self, tensor: torch.Tensor, unread: str) -> TensorLayout:
        shape = sizes_of(tensor)
        dtype, device = str(tensor.dtype).removeprefix("torch."), str(tensor.device)
        key = (dtype, shape, device, unread)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = TensorLayout(dtype, shape, contiguous(shape), device)
            known.unread = unread
        return known


def host_devices() -> frozenset[str]:
    """The types of devices whose memory is the host's: a simulated one's is."""
    now = simulated()
    return frozenset({"cpu"} if now is None else {"cpu", now.vendor.device_type})


def is_marked(tensor: torch.Tensor) -> bool:
    """Whether its memory holds the conjugates or negatives of its elements."""
    return tensor.is_conj() or tensor.is_neg()


def _layout(tensor: torch.Tensor) -> str:
    """Why it has no memory of its own: sparse_coo; nested, where it is called strided."""
    layout = str(tensor.layout).removeprefix("torch.").lstrip("_")
    return "nested" if layout == "strided" else layout


def _is_dense(dimensions: list[tuple[int, int]]) -> bool:
    """Whether the elements fill a piece of memory, in any order of the dimensions."""
    expected = 1
    for length, step in sorted(dimensions, key=lambda each: each[1]):
        if length == 0:
            return True
        if step != expected:
            return False
        expected *= length
    return True


# The bytes of a tensor in memory of the host, without a trace in the program: no graph, no version,
# no hook.


class MemoryReader:
    """Gives addresses. What it has to copy is held until the next one is asked for."""

    def __init__(self) -> None:
        self._held: torch.Tensor | None = None
        self._staging: torch.Tensor | None = None  # memory that devices copy to quickly

    def address(self, tensor: torch.Tensor, layout: TensorLayout) -> int:
        """Where `layout.nbytes` bytes lie: in the order of memory if it is dense, of its indices otherwise."""
        if layout.on_host and not (layout.has_marks and is_marked(tensor)):
            if layout.is_dense:
                return address_of(tensor) if layout.nbytes else 0
            with unobserved():
                self._held = pieces(tensor, layout).contiguous()
            return self._held.data_ptr()
        with unobserved():
            self._held = self._copied(flat(tensor, layout), layout)
        return self._held.data_ptr()

    def _copied(self, source: torch.Tensor, layout: TensorLayout) -> torch.Tensor:
        if layout.on_host:
            return source
        staging = self._staging
        if staging is None or staging.numel() < layout.nbytes:
            staging = self._staging = staging_for(source.device, layout.nbytes)
        target = staging[: layout.nbytes].view(source.dtype)
        target.copy_(source)
        return target


def address_of(tensor: torch.Tensor) -> int:
    """Raises RuntimeError where there is no memory: zeros that autograd only notes down have none."""
    address = tensor.data_ptr()
    if not address:
        raise RuntimeError("no memory")
    return address


def pieces(tensor: torch.Tensor, layout: TensorLayout) -> torch.Tensor:
    """The tensor with repeated elements once."""
    if not layout.repeats:
        return tensor
    shape = [1 if step == 0 else n for n, step in zip(layout.shape, layout.stride, strict=True)]
    return tensor.as_strided(shape, layout.stride)


def flat(tensor: torch.Tensor, layout: TensorLayout) -> torch.Tensor:
    """The tensor in one dimension, in the order in which it is kept. Call it inside `unobserved()`."""
    if layout.has_marks and is_marked(tensor):
        # a copy keeps the order of memory where the tensor is dense
        copy: torch.Tensor = torch.empty_like(pieces(tensor, layout), memory_format=torch.preserve_format)
        tensor = copy.copy_(pieces(tensor, layout))
    if layout.is_dense:
        return tensor.as_strided((layout.elements,), (1,))
    return pieces(tensor, layout).contiguous().view(-1)


def staging_for(device: torch.device, nbytes: int) -> torch.Tensor:
    """Memory of the host that the device copies to quickly."""
    options: dict[str, Any] = {"dtype": torch.uint8, "device": "cpu"}
    try:
        return torch.empty(nbytes, pin_memory=device.type != "cpu", **options)
    except RuntimeError:  # no more of it can be had, or there is no such memory for this device
        return torch.empty(nbytes, **options)


def synchronize(kind: str) -> None:
    """Wait for the devices of a type."""
    wait = getattr(getattr(torch, kind, None), "synchronize", None)
    if wait is not None:
        wait()


def generator_of(device: torch.device) -> Any:
    """What random operators of a device draw from unless they are told another one."""
    if device.type == "cpu":
        return torch.default_generator
    module = getattr(torch, device.type)
    return module.default_generators[module.current_device() if device.index is None else device.index]


# Which contents of memory are known already: by storage, region and version, so that each is read only once.
#
# A storage is known by the address of its head, which a weak reference keeps from being used again; the data goes when
# the program lets go of it. What is known of a region is forgotten when a call writes there, when the version of the
# tensor is not the expected one, or when its memory has moved. Memory that others write to (numpy, other processes,
# collectives that are under way) is *shifting*: it is read each time, and known again if its checksum is the same.

_FEWEST_PURGED = 2048
_UntypedStorage: Any = torch.UntypedStorage
_is_gone: Callable[[int], bool] = _UntypedStorage._expired
_give_back: Callable[[int], None] = _UntypedStorage._free_weak_ref
_NO_VERSION = -1  # of tensors that were made in inference mode


class Content:
    """What a piece of memory holds."""

    __slots__ = (
        "checksum",
        "is_dense",
        "number",
        "offset",
        "part",
        "part_layout",
        "slack",
        "start",
        "statistics",
        "stop",
        "version",
    )

    def __init__(self, number: int, start: int, layout: TensorLayout, version: int) -> None:
        self.number = number
        self.start = start
        self.stop = start + layout.extent
        self.is_dense = layout.is_dense
        self.version = version
        # Autograd counts a write after the call that we see, or not at all: so much more than `version` is the same.
        self.slack = 0
        self.offset: int | None = None  # in the file
        self.part: KeptPart | None = None  # what is in the file in the place of all of it,
        self.part_layout: TensorLayout | None = None  # of a tensor that looks like this
        self.checksum: int | None = None
        self.statistics: Statistics | None = None

    def is_of(self, tensor: torch.Tensor) -> bool:
        """Whether this tensor of the same memory has it still."""
        try:
            change = tensor._version - self.version
        except RuntimeError:
            change = _NO_VERSION - self.version
        if change:
            if change < 0 or change > self.slack:
                return False
            self.version += change
            self.slack = 0
        return True


NOWHERE = TensorLayout("uint8", (0,), (1,), "cpu")
UNKNOWN = Content(0, 0, NOWHERE, 0)  # of tensors that were not read


class KnownStorage:
    """What is known of one storage."""

    __slots__ = ("contents", "is_shifting", "largest", "weak")

    def __init__(self, storage: Any, is_shifting: bool) -> None:
        self.weak: int = storage._weak_ref()  # to be given back
        self.contents: dict[Hashable, Content] = {}
        self.is_shifting = is_shifting
        self.largest: Content | None = None  # that has all its bytes in the file

    def keep(self, tensor: torch.Tensor, layout: TensorLayout, number: int) -> Content:
        """From now on the tensor's memory is known under this number."""
        start = tensor.data_ptr()
        content = Content(number, start, layout, version_of(tensor))
        self.contents[(start, layout.region)] = content
        return content

    def keep_offset(self, content: Content, offset: int) -> None:
        """Note where its bytes lie in the file."""
        content.offset = offset
        largest = self.largest
        is_larger = largest is None or content.stop - content.start >= largest.stop - largest.start
        if content.is_dense and is_larger:
            self.largest = content

    def last(self, tensor: torch.Tensor, layout: TensorLayout) -> Content | None:
        """What was there when it was read last."""
        return self.contents.get((tensor.data_ptr(), layout.region))

    def around(self, tensor: torch.Tensor, layout: TensorLayout) -> Content | None:
        """The content of a dense piece of memory in the file that a dense tensor is a part of."""
        around, start = self.largest, tensor.data_ptr()
        if around is None or not layout.is_dense or self.is_shifting:
            return None
        if start < around.start or start + layout.nbytes > around.stop:
            return None
        return around if 0 <= version_of(tensor) - around.version <= around.slack else None

    def forget(self, start: int, stop: int) -> None:
        """Forget what a call has written to; it counts for all tensors that share the storage."""
        for key, content in list(self.contents.items()):
            if content.start < stop and start < content.stop:
                del self.contents[key]
            else:
                content.slack += 1
        largest = self.largest
        if largest is not None and largest.start < stop and start < largest.stop:
            self.largest = None

    def forget_all(self) -> None:
        """Forget all contents: anything may have been written."""
        self.contents.clear()
        self.largest = None


class KnownContents:
    """What is known of all storages."""

    def __init__(self) -> None:
        self._storages: dict[int, KnownStorage] = {}
        self._purged_at = _FEWEST_PURGED
        self.is_anything_shifting = False  # code runs whose writes can't be seen

    def __len__(self) -> int:
        return len(self._storages)

    def find(self, tensor: torch.Tensor, layout: TensorLayout) -> Content | None:
        """What the tensor's memory holds, if that is known; RuntimeError or NotImplementedError if it has none."""
        storage = self._storages.get(tensor.untyped_storage()._cdata)
        if storage is None or storage.is_shifting or self.is_anything_shifting:
            return None
        content = storage.contents.get((tensor.data_ptr(), layout.region))
        return content if content is not None and content.is_of(tensor) else None

    def find_or_storage(self, tensor: torch.Tensor, layout: TensorLayout) -> Content | KnownStorage:
        """The same; if it is not known, the storage, where something new is to be kept."""
        untyped = tensor.untyped_storage()
        storage = self._storages.get(untyped._cdata)
        if storage is not None and not storage.is_shifting and not self.is_anything_shifting:
            content = storage.contents.get((tensor.data_ptr(), layout.region))
            if content is not None and content.is_of(tensor):
                return content
        return self._to_keep(untyped, storage, layout)

    def storage(self, tensor: torch.Tensor, layout: TensorLayout) -> KnownStorage:
        """What is known of the tensor's storage, where something new is to be kept."""
        untyped = tensor.untyped_storage()
        return self._to_keep(untyped, self._storages.get(untyped._cdata), layout)

    def _to_keep(self, storage: Any, known: KnownStorage | None, layout: TensorLayout) -> KnownStorage:
        if known is None:
            if len(self._storages) >= self._purged_at:
                self.purge()
            is_shifting = self.is_anything_shifting or (layout.device == "cpu" and is_shared(storage))
            known = self._storages[storage._cdata] = KnownStorage(storage, is_shifting)
        elif not known.is_shifting:  # it may have become so
            known.is_shifting = self.is_anything_shifting or (layout.device == "cpu" and is_shared(storage))
        return known

    def forget(self, tensor: torch.Tensor, layout: TensorLayout) -> None:
        """Forget what a call has written to."""
        storage = self._storages.get(tensor.untyped_storage()._cdata)
        if storage is not None:
            start = tensor.data_ptr()
            storage.forget(start, start + layout.extent)

    def forget_storage(self, tensor: torch.Tensor) -> None:
        """A call may have written to all of the tensor's storage, or given it another."""
        storage = self._storages.get(tensor.untyped_storage()._cdata)
        if storage is not None:
            storage.forget_all()

    def set_shifting(self, tensor: torch.Tensor, layout: TensorLayout, is_shifting: bool) -> None:
        """Something writes to it, or has ended to do so."""
        storage = self.storage(tensor, layout)
        storage.forget_all()
        storage.is_shifting = is_shifting

    def forget_all(self) -> None:
        """Forget all storages: calls were made that nobody saw."""
        storages, self._storages = self._storages, {}
        for storage in storages.values():
            _give_back(storage.weak)

    def purge(self) -> None:
        """Let go of the storages that the program has let go of."""
        for head, storage in list(self._storages.items()):
            if _is_gone(storage.weak):
                del self._storages[head]
                _give_back(storage.weak)
        self._purged_at = max(_FEWEST_PURGED, 2 * len(self._storages))

    def __del__(self) -> None:
        self.forget_all()


def version_of(tensor: torch.Tensor) -> int:
    """How often autograd has seen it written to."""
    try:
        return tensor._version
    except RuntimeError:  # made in inference mode
        return _NO_VERSION


def is_shared(storage: torch.UntypedStorage) -> bool:
    """Whether memory of the host belongs to somebody else as well: numpy, a buffer, another process."""
    return not storage.resizable() or bool(storage.is_shared())
