"""What the card's profiler can be told to collect; kept and checked here, with nothing on a CPU to collect."""

from __future__ import annotations

from enum import Enum
from typing import Any


class ProfilerLevel(Enum):
    """How much is collected."""

    Level_none = "Level_none"
    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"


class AiCMetrics(Enum):
    """Which counters of the cores are read."""

    AiCoreNone = "AiCoreNone"
    PipeUtilization = "PipeUtilization"
    ArithmeticUtilization = "ArithmeticUtilization"
    Memory = "Memory"
    MemoryL0 = "MemoryL0"
    MemoryUB = "MemoryUB"
    MemoryAccess = "MemoryAccess"
    ResourceConflictRatio = "ResourceConflictRatio"
    L2Cache = "L2Cache"


class ExportType(Enum):
    """In which form results are written."""

    Text = "text"
    Db = "db"


def supported_profiler_level() -> set[ProfilerLevel]:
    """All levels that collect something."""
    return set(ProfilerLevel) - {ProfilerLevel.Level_none}


def supported_ai_core_metrics() -> set[AiCMetrics]:
    """All metrics that read something."""
    return set(AiCMetrics) - {AiCMetrics.AiCoreNone}


def supported_export_type() -> set[ExportType]:
    """All forms of results."""
    return set(ExportType)


class _ExperimentalConfig:
    """The card's extra settings."""

    def __init__(
        self,
        profiler_level: ProfilerLevel = ProfilerLevel.Level0,
        aic_metrics: AiCMetrics = AiCMetrics.AiCoreNone,
        l2_cache: bool = False,
        msprof_tx: bool = False,
        data_simplification: bool = True,
        record_op_args: bool = False,
        op_attr: bool = False,
        gc_detect_threshold: float | None = None,
        export_type: Any = ExportType.Text,
        **others: Any,
    ) -> None:
        self.profiler_level = profiler_level
        has_counters = profiler_level in (ProfilerLevel.Level1, ProfilerLevel.Level2)
        if has_counters and aic_metrics is AiCMetrics.AiCoreNone:
            aic_metrics = AiCMetrics.PipeUtilization
        self.aic_metrics = aic_metrics if has_counters else AiCMetrics.AiCoreNone
        self.l2_cache = l2_cache
        self.msprof_tx = msprof_tx
        self.data_simplification = data_simplification
        self.record_op_args = record_op_args
        self.op_attr = op_attr
        self.gc_detect_threshold = gc_detect_threshold
        self.export_type = export_type
        self.others = others
