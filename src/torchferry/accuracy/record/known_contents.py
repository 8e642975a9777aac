"""Which contents of memory are known already: by storage, region and version, so that each is read only once.

A storage is known by the address of its head, which a weak reference keeps from being used again; the data goes when
the program lets go of it. What is known of a region is forgotten when a call writes there, when the version of the
tensor is not the expected one, or when its memory has moved. Memory that others write to (numpy, other processes,
collectives that are under way) is *shifting*: it is read each time, and known again if its checksum is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch

from torchferry.accuracy.model import Statistics
from torchferry.accuracy.record.layout import TensorLayout

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
        try:
            version = tensor._version
        except RuntimeError:
            version = _NO_VERSION
        content = self.contents[(start, layout.region)] = Content(number, start, layout, version)
        return content

    def keep_offset(self, content: Content, offset: int) -> None:
        """Its bytes lie in the file."""
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
        """A call has written there. It counts for all tensors that share the storage."""
        for key, content in list(self.contents.items()):
            if content.start < stop and start < content.stop:
                del self.contents[key]
            else:
                content.slack += 1
        largest = self.largest
        if largest is not None and largest.start < stop and start < largest.stop:
            self.largest = None

    def forget_all(self) -> None:
        """Anything may have been written."""
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
            is_shifting = self.is_anything_shifting or (layout.device == "cpu" and _is_shared(storage))
            known = self._storages[storage._cdata] = KnownStorage(storage, is_shifting)
        elif not known.is_shifting:  # it may have become so
            known.is_shifting = self.is_anything_shifting or (layout.device == "cpu" and _is_shared(storage))
        return known

    def forget(self, tensor: torch.Tensor, layout: TensorLayout) -> None:
        """A call has written to the tensor."""
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
        """Calls were made that nobody saw."""
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


def _is_shared(storage: torch.UntypedStorage) -> bool:
    """Whether memory of the host belongs to somebody else as well: numpy, a buffer, another process."""
    return not storage.resizable() or bool(storage.is_shared())
