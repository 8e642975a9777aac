"""The kernels of triton_kernels.py for memory of the host: same arguments, same tables, without Triton."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import torch

from torchferry.accuracy.model import ROW
from torchferry.accuracy.native.library import DTYPES, statistics_into
from torchferry.observe.modes import unobserved

COLUMNS, ENTRY, BEYOND, TILE = 9, 6, 1 << 40, 1024
launches: list[str] = []


class HostKernel:
    """What can be launched as Triton's kernels are."""

    def __init__(self, run: Callable[..., None]) -> None:
        self._run = run

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., HostKernel]:
        def launch(*arguments: Any, stream: int | None = None) -> HostKernel:
            launches.append(self._run.__name__)
            with unobserved():
                self._run(grid, *arguments)
            return self

        return launch


def _entry(table: torch.Tensor, place: int) -> list[int]:
    return table[place * ENTRY : (place + 1) * ENTRY].tolist()


def _sum_up(
    grid: tuple[int, ...],
    address: int,
    nbytes: int,
    first: int,
    programs: int,
    wanted: int,
    start: int,
    table: torch.Tensor,
    left: torch.Tensor,
    kind: int,
    size: int,
) -> None:
    """The first program of a tensor leaves its whole row, the others leave nothing."""
    for tensor in range(grid[1]):
        memory, length, place, count, numbers, kind_there = _entry(table, start - BEYOND + tensor)
        if kind_there != wanted - BEYOND:
            continue
        assert kind_there == kind
        assert count <= grid[0], "too few programs"
        assert numbers * size == length
        row = ctypes.create_string_buffer(ROW.size)
        statistics_into(memory, DTYPES[kind], numbers, ctypes.addressof(row))
        target = left[place * COLUMNS :].data_ptr()
        ctypes.memmove(target, row, ROW.size)


def _write_rows(
    grid: tuple[int, ...], start: int, table: torch.Tensor, left: torch.Tensor, rows: torch.Tensor
) -> None:
    for place in range(start - BEYOND, start - BEYOND + grid[0]):
        first = _entry(table, place)[2]
        rows[place * COLUMNS : (place + 1) * COLUMNS] = left[first * COLUMNS : (first + 1) * COLUMNS]


sum_up, write_rows = HostKernel(_sum_up), HostKernel(_write_rows)
