"""A little of everything, for each vendor."""

from __future__ import annotations

from tests.sim.distributed.checks.collectives import (
    check_all_gather_into_tensor,
    check_all_reduce_operations,
    check_bitwise_reductions_are_refused,
    check_broadcast,
    check_host_tensors_are_refused,
    check_objects,
    check_reduce_scatter_tensor,
)
from tests.sim.distributed.checks.training import check_fully_shard, check_sync_batch_norm
from tests.sim.distributed.checks.works import check_groups, check_nccl_says_what_to_use

__all__ = [
    "check_all_gather_into_tensor",
    "check_all_reduce_operations",
    "check_bitwise_reductions_are_refused",
    "check_broadcast",
    "check_fully_shard",
    "check_groups",
    "check_host_tensors_are_refused",
    "check_nccl_says_what_to_use",
    "check_objects",
    "check_reduce_scatter_tensor",
    "check_sync_batch_norm",
]
