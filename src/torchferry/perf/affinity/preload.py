"""A loader that has the next batch on the device before it is asked for."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

# Batches as loaders make them: tensors inside dictionaries, lists, tuples and objects, to any depth.

Change = Callable[[Any], Any]


def changed(batch: Any, change: Change, change_mover: Change = lambda item: item) -> Any:
    """The same structure with other tensors, and with other objects where these can move themselves (`.to`)."""
    if isinstance(batch, Tensor):
        return change(batch)
    if isinstance(batch, Mapping):
        return _changed_mapping(batch, change, change_mover)
    if hasattr(batch, "to") and not isinstance(batch, type):
        return change_mover(batch)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(changed(item, change, change_mover) for item in batch))
    if isinstance(batch, (list, tuple)):
        return _changed_sequence(batch, change, change_mover)
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        names = [field.name for field in dataclasses.fields(batch) if field.init]
        made = {name: changed(getattr(batch, name), change, change_mover) for name in names}
        return dataclasses.replace(batch, **made)
    return batch


def _changed_mapping(batch: Mapping[Any, Any], change: Change, change_mover: Change) -> Any:
    items = {key: changed(value, change, change_mover) for key, value in batch.items()}
    if type(batch) is dict:
        return items
    made: Any = copy.copy(batch)  # keeps what a subclass holds beside its items
    try:
        made.update(items)
    except (AttributeError, TypeError):
        return items
    return made


def _changed_sequence(batch: Sequence[Any], change: Change, change_mover: Change) -> Any:
    items = [changed(item, change, change_mover) for item in batch]
    try:
        return type(batch)(items)  # type: ignore[call-arg]
    except TypeError:
        return items if isinstance(batch, list) else tuple(items)


def tensors(batch: Any) -> Iterator[Tensor]:
    """Every tensor of a batch, but those inside objects that move themselves."""
    found: list[Tensor] = []

    def see(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    changed(batch, see)
    yield from found


_WHITE = 255.0
_PINNED_FROM = 64 * 1024  # bytes; less than that is copied through a buffer of the driver's, without waiting
_WITH_CHANNELS = 4  # dimensions: (batch, channels, height, width); with fewer, uint8 may be a mask


class PreLoader:
    """Goes over a loader; copies each batch to the device on a stream of its own while the step before it runs.

    `for batch in PreLoader(loader, device)` sees what `for batch in loader` sees, in that order, with all tensors on the
    device. With `mean` and `std` (of values from 0 to 1, one for each channel) images in uint8, (N, C, H, W), are
    normalised there too: a quarter of the bytes is copied, and workers have less to do. Where the device has no
    streams, tensors are moved when their batch is due. Other attributes are the loader's.
    """

    def __init__(
        self,
        loader: Any,
        device: torch.device | str | int | None = None,
        *,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        stream: Any = None,
    ) -> None:
        if (mean is None) != (std is None):
            raise ValueError("PreLoader needs both mean and std, or neither")
        if mean is not None and std is not None and len(mean) != len(std):
            raise ValueError(
                f"PreLoader needs as many numbers in mean as in std; found {len(mean)} and {len(std)}"
            )
        self.loader = loader
        self.device = _device(device)
        self._stream = stream
        self._scale = None if mean is None or std is None else torch.tensor([[*mean], [*std]])

    @property
    def _streams(self) -> Any:
        return _module_with_streams(self.device)

    def __len__(self) -> int:
        return len(self.loader)

    def __getattr__(self, name: str) -> Any:
        if name == "loader":  # not there yet: while it is unpickled
            raise AttributeError(name)
        return getattr(self.loader, name)

    def __iter__(self) -> Iterator[Any]:
        source = iter(self.loader)
        if self._streams is None:
            for batch in source:
                yield changed(batch, self._moved, self._moved_object)
            return
        if self._stream is None:
            self._stream = self._streams.Stream(device=self.device)
        ahead, error = self._next(source)
        while error is None:
            batch = self._arrived(ahead)
            ahead, error = self._next(source)
            yield batch
        if not isinstance(error, StopIteration):
            raise error

    def _next(self, source: Iterator[Any]) -> tuple[Any, Exception | None]:
        """Start the copies of a batch. An error, such as StopIteration at the end, is raised when its batch is due."""
        try:
            batch = next(source)
            with self._streams.stream(self._stream):
                return changed(batch, self._moved), None
        except Exception as error:
            return None, error

    def _arrived(self, batch: Any) -> Any:
        """The batch, for use on the stream that computes: that stream waits, the program does not."""
        computing = self._streams.current_stream(self.device)
        computing.wait_stream(self._stream)
        for tensor in tensors(batch):
            if tensor.device.type == self.device.type and tensor.layout is torch.strided:
                tensor.record_stream(computing)
        # Their tensors are out of sight, so that none of them could be kept from being freed too early.
        return changed(batch, lambda tensor: tensor, self._moved_object)

    def _moved_object(self, item: Any) -> Any:
        """PackedSequence, batches of graphs ...: objects that know best what of them belongs on a device."""
        return item.to(self.device)

    def _moved(self, tensor: Tensor) -> Tensor:
        if self._streams is not None and tensor.device.type == "cpu":
            tensor = _pinned(tensor, self.device)
        moved = tensor.to(self.device, non_blocking=self._streams is not None)
        return self._normalised(moved)

    def _normalised(self, tensor: Tensor) -> Tensor:
        """As torchvision's ToTensor and Normalize compute it."""
        if self._scale is None or tensor.dtype != torch.uint8 or tensor.dim() < _WITH_CHANNELS:
            return tensor
        if tensor.shape[-3] != self._scale.shape[1]:
            return tensor
        self._scale = self._scale.to(tensor.device)
        mean, std = self._scale[:, :, None, None]
        return tensor.float().div_(_WHITE).sub_(mean).div_(std)


def _pinned(tensor: Tensor, device: torch.device) -> Tensor:
    """A copy from pinned memory runs beside the program; from other memory the program waits for it."""
    if tensor.layout is not torch.strided or tensor.numel() * tensor.element_size() < _PINNED_FROM:
        return tensor
    # The device is the default one since there is torch.accelerator, and before that it was CUDA.
    where = () if hasattr(torch, "accelerator") else (device.type,)
    try:
        return tensor if tensor.is_pinned(*where) else tensor.pin_memory(*where)
    except (RuntimeError, NotImplementedError):  # the adapter has none: the copy is right all the same
        return tensor


def _device(device: torch.device | str | int | None) -> torch.device:
    """The device with the number of the current one where none is given: a copy must go to one device, whoever asks later."""
    if device is None:
        device = _accelerator()
    chosen = torch.device(device)
    module = _module_with_streams(chosen)
    if module is None or chosen.index is not None:
        return chosen
    return torch.device(chosen.type, module.current_device())


def _accelerator() -> str:
    """The device of this process that is no CPU, if there is one."""
    if hasattr(torch, "accelerator"):
        found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        return found.type if found is not None else "cpu"
    for name in (torch._C._get_privateuse1_backend_name(), "cuda"):
        module = getattr(torch, name, None)
        if module is not None and module.is_available():
            return name
    return "cpu"


def _module_with_streams(device: torch.device) -> Any:
    """torch.cuda and the like; None where work has no streams."""
    if device.type in ("cpu", "meta"):
        return None
    module = getattr(torch, device.type, None)
    needed = ("Stream", "stream", "current_stream", "current_device")
    return module if all(hasattr(module, name) for name in needed) else None
