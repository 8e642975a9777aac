"""The profiler and the compiler's options as the porting guide of the changed PyTorch writes them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.sim.shims.checks.amp import raises


def work(device: str) -> None:
    layer = nn.Linear(3, 3).to(device)
    layer(torch.ones(3, 3, device=device)).sum().backward()


def operators(file: Path) -> list[str]:
    events: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))["traceEvents"]
    return [event["name"] for event in events if event.get("cat") == "cpu_op"]


def check_a_simple_profile_has_the_innermost_operators_alone(device: str) -> None:
    if device == "cpu":
        return  # the simulator teaches PyTorch the arguments
    with tempfile.TemporaryDirectory() as folder:
        seen = {}
        for simple in (False, True):
            with torch.autograd.profiler.profile(use_npu=True, use_npu_simple=simple) as watch:  # type: ignore[call-arg]
                work(device)
            file = Path(folder) / f"{simple}.json"
            watch.export_chrome_trace(str(file))
            seen[simple] = set(operators(file))
            table = str(watch)
            assert "aten::addmm" in table and ("aten::linear" in table) is not simple
        assert "aten::addmm" in seen[True] < seen[False]
        assert "aten::linear" in seen[False] - seen[True]


def check_a_block_of_the_device_module_leaves_a_trace(device: str) -> None:
    if device == "cpu":
        return  # there is no torch.npu
    npu: Any = torch.npu  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as folder:
        config = npu.profileConfig(ACL_PROF_L2CACHE=True, aiCoreMetricsType=1)
        with npu.profile(profiler_result_path=folder, use_e2e_profiler=True, config=config):
            work(device)
        (file,) = Path(folder).glob("PROF_*/timeline/trace.json")
        assert "aten::addmm" in operators(file)
        kept = json.loads(file.read_text("utf-8"))["profileConfig"]
        assert kept["ACL_PROF_L2CACHE"] is True and kept["ACL_PROF_AICPU"] is True
        with raises(AssertionError, "not exists"), npu.profile(f"{folder}/missing"):
            pass
    with raises(TypeError, "unexpected keyword argument 'ACL_PROF'"):
        npu.profileConfig(ACL_PROF=True)
    with raises(ValueError, "aiCoreMetricsType should be in"):
        npu.profileConfig(aiCoreMetricsType=7)


def check_options_of_the_compiler_are_checked(device: str) -> None:
    if device == "cpu":
        return  # there is no torch.npu
    set_option: Any = torch.npu.set_option  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as folder:
        set_option({"ACL_OP_SELECT_IMPL_MODE": "high_performance", "ACL_OP_DEBUG_LEVEL": 1})
        set_option({"ACL_OP_COMPILER_CACHE_MODE": "enable", "ACL_OP_COMPILER_CACHE_DIR": folder})
        set_option({"ACL_OPTYPELIST_FOR_IMPLMODE": "SoftmaxV2", "ACL_DEBUG_DIR": folder})
    with raises(ValueError, "should be a folder that exists"):
        set_option({"ACL_DEBUG_DIR": folder})
    with raises(ValueError, "ACL_OP_SELECT_IMPL_MODE should be in"):
        set_option({"ACL_OP_SELECT_IMPL_MODE": "fast"})
    with raises(ValueError, "a number from 1 to 32"):
        set_option({"ACL_AICORE_NUM": 33})
    with raises(RuntimeError, "invalid npu option name:ACL_NONSENSE"):
        set_option({"ACL_NONSENSE": "1"})
    with raises(TypeError, "must be a dict"):
        set_option([("ACL_OP_DEBUG_LEVEL", 1)])


def check_blocks_within_one_second_leave_a_folder_each(device: str) -> None:
    if device == "cpu":
        return  # there is no torch.npu
    npu: Any = torch.npu  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(3):
            with npu.profile(folder):
                torch.ones(2, device=device)
        assert len(list(Path(folder).glob("PROF_*/timeline/trace.json"))) == 3


def check_the_affinity_library_has_the_name_of_the_guide(device: str) -> None:
    if device == "cpu":
        return  # there is no torch.npu
    from torch.contrib.npu.optimized_lib import ChannelShuffle, PreLoader  # type: ignore[import-not-found]

    from torchferry.perf import affinity

    assert (ChannelShuffle, PreLoader) == (affinity.ChannelShuffle, affinity.PreLoader)
    assert torch.contrib.__file__  # torch's own package stays what it is
