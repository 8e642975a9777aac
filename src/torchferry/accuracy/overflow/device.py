"""Looks at results on a device that computes by itself: reductions there, fetched together once in a while."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from torchferry.accuracy.model import Statistics
from torchferry.accuracy.overflow.calls import CheckedCall
from torchferry.observe.modes import unobserved
from torchferry.observe.tensors import why_unreadable

MOST_CALLS = 256  # that wait for their results to be fetched
MOST_BYTES = 1 << 30  # that they may keep from being freed
_BLOCK = 256  # tensors
_Key = tuple[torch.device, torch.dtype]


class Slots:
    """Memory on a device for the smallest value, the largest value and the norm of tensors of one dtype."""

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        self._device, self._dtype = device, dtype
        self._blocks: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._places: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        self._counts: list[int] = []

    def look(self, tensor: torch.Tensor) -> int:
        """Have it looked at; answers its slot."""
        slot = len(self._counts)
        if slot == len(self._places):
            self._grow()
        low, high, norm = self._places[slot]
        torch.aminmax(tensor, out=(low, high))
        torch.linalg.vector_norm(tensor, dtype=norm.dtype, out=norm)
        self._counts.append(tensor.numel())
        return slot

    def _grow(self) -> None:
        extremes = torch.zeros(_BLOCK, 2, dtype=self._dtype, device=self._device)
        # squares of half precision overflow early
        wide = self._dtype if self._dtype is torch.float64 else torch.float32
        norms = torch.zeros(_BLOCK, dtype=wide, device=self._device)
        self._blocks.append((extremes, norms))
        self._places += [(extremes[row, 0], extremes[row, 1], norms[row]) for row in range(_BLOCK)]

    def fetch(self) -> list[Statistics]:
        """Of all slots in use, which are free afterwards. Counts say only whether there are any."""
        if not self._counts:
            return []
        used = self._blocks[: (len(self._counts) - 1) // _BLOCK + 1]
        extremes = [row for block, _ in used for row in block.cpu().double().tolist()]
        norms = [norm for _, block in used for norm in block.cpu().double().tolist()]
        counts, self._counts = self._counts, []
        return [_statistics(*one) for one in zip(counts, extremes, norms, strict=False)]


def _statistics(count: int, extremes: list[float], norm: float) -> Statistics:
    low, high = extremes
    has_nan = math.isnan(low) or math.isnan(high)
    has_infinity = math.isinf(low) or math.isinf(high)
    rms = norm / math.sqrt(count) if count else 0.0
    return Statistics(count, int(has_nan), int(has_infinity), 0, low, high, 0.0, rms, 0)


class PendingCalls:
    """Calls whose results are being looked at; `judge` gets each with its figures once they are known."""

    def __init__(self, judge: Callable[[CheckedCall, dict[str, Statistics]], None]) -> None:
        self._judge = judge
        self._slots: dict[_Key, Slots] = {}
        self._calls: list[tuple[CheckedCall, list[tuple[str, _Key, int]]]] = []
        self._held: set[int] = set()  # tensors of those calls
        self._nbytes = 0

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, call: CheckedCall) -> None:
        """Have its results looked at."""
        looked: list[tuple[str, _Key, int]] = []
        with unobserved():
            for name, tensor in call.outputs:
                if tensor.numel() and not why_unreadable(tensor):
                    looked.append((name, *self._look(_as_real(tensor.detach()))))
        self._calls.append((call, looked))
        self._held.update(id(tensor) for _, tensor in (*call.inputs, *call.outputs))
        self._nbytes += call.nbytes()
        if len(self._calls) >= MOST_CALLS or self._nbytes > MOST_BYTES:
            self.flush()

    def _look(self, tensor: torch.Tensor) -> tuple[_Key, int]:
        key = (tensor.device, tensor.dtype)
        slots = self._slots.get(key)
        if slots is None:
            slots = self._slots[key] = Slots(*key)
        return key, slots.look(tensor)

    def before_write(self, call: CheckedCall) -> None:
        """What this call is about to overwrite, calls that wait may still need: they get its copy. Where there is
        none, since the call does not read it, they are judged now."""
        copied = {id(original) for original, _ in call.copies}
        lost = {id(tensor) for _, tensor in call.written_tensors()} - copied
        if lost & self._held:
            self.flush()
        elif copied & self._held:
            for original, copy in call.copies:
                for waiting, _ in self._calls:
                    waiting.keep(original, copy)

    def flush(self) -> None:
        """Wait for the device, and judge all that were added, in their order."""
        with unobserved():
            known = {key: slots.fetch() for key, slots in self._slots.items()}
        calls, self._calls, self._held, self._nbytes = self._calls, [], set(), 0
        for call, looked in calls:
            self._judge(call, {name: known[key][slot] for name, key, slot in looked})


def _as_real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
