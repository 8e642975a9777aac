"""Graphs of the stand-in: as on the simulated device, a replay runs the captured operators again."""

from __future__ import annotations

from typing import Any

import torch

from torchferry.runtime.module_parts import graphs


class CUDAGraph(graphs.Graph):
    """torch.cuda.CUDAGraph; every tensor is on the device that CUDA's names mean."""

    @staticmethod
    def _is_on_device(tensor: torch.Tensor) -> bool:
        return True

    @staticmethod
    def _random_states() -> Any:
        return torch.get_rng_state()

    @staticmethod
    def _set_random_states(states: Any) -> None:
        torch.set_rng_state(states)


NAMES = graphs.names(CUDAGraph)
