"""Figures of tensors: those that the host can read are looked at once, as long as nothing is written to them."""

from __future__ import annotations

import ctypes
import weakref

import torch

from torchferry.accuracy.model import Statistics
from torchferry.accuracy.native.statistics import ROW, decode, statistics_into
from torchferry.accuracy.overflow.calls import is_number
from torchferry.accuracy.overflow.model import Figures
from torchferry.accuracy.record.outside import Outside, Outsides
from torchferry.accuracy.record.reading import Reader
from torchferry.accuracy.record.tensors import version_of
from torchferry.observe.modes import unobserved

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_MOST_KNOWN = 20_000  # tensors
_NOTHING = Statistics(0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0)


class KnownFigures:
    """What is known of the tensors of a process. `on_host`: the types of devices whose memory the host can read."""

    def __init__(self, on_host: frozenset[str]) -> None:
        self._outsides = Outsides(on_host)
        self._reader = Reader()
        self._row = ctypes.create_string_buffer(ROW.size)
        # by the numbers of tensors, with their versions; a number may be used again once its tensor is gone
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], int, Statistics]] = {}

    def of_input(self, name: str, tensor: torch.Tensor) -> Figures:
        """What is known of it, or can be seen from here."""
        outside = self.outside(tensor)
        known = None
        if is_number(tensor) and not outside.unread:
            known = self._recalled(tensor)
            if known is None and outside.on_host:
                known = self._look(tensor, outside)
                self._remember(tensor, known)
        return Figures(name, outside.dtype, outside.shape, known)

    def of_output(self, name: str, tensor: torch.Tensor, known: Statistics | None = None) -> Figures:
        """Of a result: autograd counts a write only after the call, so what was known of it counts no longer."""
        outside = self.outside(tensor)
        if known is None and outside.on_host and not outside.unread:
            known = self._look(tensor, outside)
        self._remember(tensor, known)
        return Figures(name, outside.dtype, outside.shape, known)

    def exact(self, name: str, tensor: torch.Tensor) -> Figures:
        """The same of a tensor of any device, looked at anew: it may have been written to behind autograd's back."""
        outside = self.outside(tensor)
        is_readable = is_number(tensor) and not outside.unread
        return Figures(
            name, outside.dtype, outside.shape, self._look(tensor, outside) if is_readable else None
        )

    def outside(self, tensor: torch.Tensor) -> Outside:
        """Its dtype, shape and device."""
        return self._outsides.of(tensor) if type(tensor) in _PLAIN else self._outsides.of_any(tensor)

    def is_on_host(self, tensor: torch.Tensor) -> bool:
        """Whether the processor can read its memory."""
        return self.outside(tensor).on_host

    def _look(self, tensor: torch.Tensor, outside: Outside) -> Statistics | None:
        if not outside.elements:
            return _NOTHING
        if not _has_memory(tensor):
            return None
        address = self._reader.address(tensor, outside)
        statistics_into(address, outside.dtype, outside.elements, ctypes.addressof(self._row))
        return decode(self._row)

    def _recalled(self, tensor: torch.Tensor) -> Statistics | None:
        known = self._known.get(id(tensor))
        if known is None or known[0]() is not tensor or known[1] != version_of(tensor):
            return None
        return known[2]

    def _remember(self, tensor: torch.Tensor, statistics: Statistics | None) -> None:
        if statistics is None:
            return
        if len(self._known) > _MOST_KNOWN:
            self._known = {number: known for number, known in self._known.items() if known[0]() is not None}
        self._known[id(tensor)] = (weakref.ref(tensor), version_of(tensor), statistics)


def fetched(tensor: torch.Tensor) -> torch.Tensor:
    """On the host, as it is now."""
    with unobserved():
        return tensor.detach().cpu()


def _has_memory(tensor: torch.Tensor) -> bool:
    """Some have given it back, and wrappers never had any."""
    try:
        return tensor.data_ptr() != 0
    except (RuntimeError, NotImplementedError):
        return False
