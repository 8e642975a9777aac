"""All detectors, in the order in which they are listed, and named where they matter the same."""

from __future__ import annotations

from importlib import import_module

from torchferry.perf.detect.model import Detector

_MODULES = (
    "data_loader",
    "host_bound",
    "synchronization",
    "tensor_print",
    "element_access",
    "checkpoint_writing",
    "uneven_steps",
    "communication",
    "mixed_precision",
    "low_utilisation",
    "unfused_optimizer",
    "zero_grad",
    "small_uploads",
    "memory_limit",
    "allocation",
    "garbage_collection",
    "anomaly_detection",
    "slow_operator",
    "ai_cpu",
    "fallback",
    "non_contiguous",
    "device_copies",
    "format_conversion",
    "format_pairs",
    "pageable_copies",
    "dynamic_shapes",
    "recompiles",
)
DETECTORS: tuple[Detector, ...] = tuple(
    import_module(f"{__package__}.{module}").DETECTOR for module in _MODULES
)
