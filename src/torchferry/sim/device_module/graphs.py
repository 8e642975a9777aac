"""Graph capture on the simulated device: a replay runs the captured operators again."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from torchferry.runtime import graphs
from torchferry.sim import native
from torchferry.sim.device_module.devices import device_type, identity
from torchferry.sim.device_module.seeds import random_states

_INFERENCE_ONLY = "inference_only"  # in the vendor's notes of its functions


class Graph(graphs.Graph):
    """The vendor's graph class."""

    # Kernels of the simulated device that stand in front of derivatives and call the CPU's past every mode.
    _unseen = frozenset(
        ("lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "group_norm", "native_group_norm")
    )

    def capture_begin(self, *args: object, **settings: object) -> None:
        """Record from here on; where the vendor's graphs are for inference, say so of one that could train."""
        vendor = identity().vendor
        if _INFERENCE_ONLY in vendor.api_notes.get("torch.cuda.CUDAGraph", "") and torch.is_grad_enabled():
            warnings.warn(
                f"{vendor.company}'s documents have graphs for inference only; this one is captured with gradients on, "
                "which the simulated device can do",
                stacklevel=3,
            )
        super().capture_begin(*args, **settings)

    @staticmethod
    def _is_on_device(tensor: torch.Tensor) -> bool:
        return tensor.device.type == device_type()

    @staticmethod
    def _other_storages(tensor: torch.Tensor) -> list[torch.UntypedStorage]:
        """Some operators are made of the host's, on the host storage inside."""
        return [native.host_bytes(tensor).untyped_storage()] if Graph._is_on_device(tensor) else []

    @staticmethod
    def _random_states() -> Any:
        return random_states.get_rng_state_all()

    @staticmethod
    def _set_random_states(states: Any) -> None:
        random_states.set_rng_state_all(states)


API = graphs.names(Graph)
