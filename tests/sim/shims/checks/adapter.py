"""The rest of torch_npu: optimizers on the device, affinity modules, the profiler."""

from __future__ import annotations

import inspect
import json
import tempfile
from pathlib import Path

import torch
import torch_npu  # type: ignore[import-not-found]
from torch import nn

from tests.sim.shims.checks.amp import raises
from tests.sim.shims.nets import batches, small_net


def check_every_fused_optimizer_trains(device: str) -> None:
    images, classes = next(batches(1, device))
    for name in torch_npu.optim.__all__:
        net = small_net(device)
        optimizer = getattr(torch_npu.optim, name)(net.parameters(), lr=0.01)
        losses = []
        for _ in range(4):
            loss = nn.functional.cross_entropy(net(images), classes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.clip_grad_norm_fused_(1.0)
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0], (name, losses)
        assert next(net.parameters()).device == torch.device(device)


def check_parameters_elsewhere_are_refused(device: str) -> None:
    if device == "cpu":
        return  # nowhere else
    net = small_net("cpu")
    optimizer = torch_npu.optim.NpuFusedSGD(net.parameters(), lr=0.1)
    net(next(batches(1))[0]).sum().backward()
    try:
        optimizer.step()
    except RuntimeError as error:
        assert "must be on NPU, got cpu" in str(error)
    else:
        raise AssertionError("stepped")


def check_affinity_modules(device: str) -> None:
    from torch_npu.contrib import function, module

    images = torch.randn(2, 4, 6, 6, device=device)
    assert module.Focus(4, 8).to(device)(images).shape == (2, 8, 3, 3)
    first, second = module.ChannelShuffle(8).to(device)(images, images + 1)
    joined = torch.cat((images, images + 1), 1)
    expected = nn.ChannelShuffle(2)(joined.cpu())
    assert torch.equal(torch.cat((first, second), 1).cpu(), expected)
    assert torch.equal(module.Mish()(images), nn.functional.mish(images))
    scores, classes = torch.randn(4, 5, device=device), torch.tensor([0, 1, 2, 3], device=device)
    smooth = module.LabelSmoothingCrossEntropy(5, 0.2)(scores, classes)
    torch.testing.assert_close(smooth, nn.functional.cross_entropy(scores, classes, label_smoothing=0.25))
    drop = module.NpuDropPath(0.5)
    kept = drop(torch.ones(400, 3, device=device))
    assert set(kept.unique().tolist()) == {0.0, 2.0} and torch.equal(drop.eval()(images), images)
    assert torch.equal(function.roll(images, (1, 2), (2, 3)), torch.roll(images, (1, 2), (2, 3)))
    torch.testing.assert_close(function.matmul_transpose(images, images), images @ images.transpose(-1, -2))
    put = function.npu_fast_condition_index_put(images, images > 0, 7.0)
    assert torch.equal(put, images.masked_fill(images > 0, 7.0))
    assert module.BiLSTM(3, 5).to(device)(torch.randn(7, 2, 3, device=device)).shape == (7, 2, 10)


def check_the_profiler_writes_a_trace(device: str) -> None:
    profiler = torch_npu.profiler
    with tempfile.TemporaryDirectory() as folder:
        config = profiler._ExperimentalConfig(profiler_level=profiler.ProfilerLevel.Level1)
        assert config.aic_metrics is profiler.AiCMetrics.PipeUtilization
        with profiler.profile(
            activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU],
            schedule=profiler.schedule(wait=1, active=1, warmup=1),
            on_trace_ready=profiler.tensorboard_trace_handler(folder, worker_name="me"),
            record_shapes=True,
            experimental_config=config,
        ) as watch:
            for _ in range(3):
                torch.ones(3, 3, device=device) @ torch.ones(3, 3, device=device)
                watch.step()
        traces = list(Path(folder).glob("me_*_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json"))
        assert len(traces) == 1
        events = json.loads(traces[0].read_text())["traceEvents"]
        assert any(event.get("name") in ("aten::mm", "aten::matmul") for event in events)


def check_the_profiler_exports_by_hand(device: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        watch = torch_npu.profiler._KinetoProfile(with_stack=True)
        watch.start()
        torch.ones(4, device=device).sum().item()
        watch.add_metadata("who", "me")
        watch.stop()
        file = Path(folder) / "trace.json"
        watch.export_chrome_trace(str(file))
        assert any(event.get("name") == "aten::sum" for event in json.loads(file.read_text())["traceEvents"])
        watch.export_stacks(str(Path(folder) / "stacks.txt"))
        with raises(RuntimeError, "must be a json file"):
            watch.export_chrome_trace(str(Path(folder) / "trace.txt"))


def check_the_profiler_lacks_what_the_cards_lacks(device: str) -> None:
    with torch_npu.profiler.profile() as watch:
        torch.ones(4, device=device).sum()
        watch.step()
    assert watch.step_num == 1
    assert not hasattr(watch, "key_averages") and not hasattr(watch, "events")


def check_the_old_profiler_watches_the_device_by_name(device: str) -> None:
    if device == "cpu":
        return  # there is nothing to watch
    # Older releases of torch read a device's times only under the name "privateuseone", which they refuse to watch.
    reader = torch.autograd.profiler.profile._parse_kineto_results
    reads_times = '"privateuseone"' not in inspect.getsource(reader)
    for settings in ({}, {"record_shapes": True}, {"profile_memory": True}, {"use_npu_simple": True}):
        with torch.autograd.profiler.profile(use_npu=True, **settings) as watch:
            torch.ones(3, 3, device=device).sum()
        assert ("Self NPU" in str(watch)) is reads_times and "aten::sum" in str(watch)
    with torch.autograd.profiler.profile(use_npu=False) as watch:
        torch.ones(3, 3, device=device).sum()
    assert "Self NPU" not in str(watch)


def check_the_device_module_has_two_names(device: str) -> None:
    assert torch_npu.__version__ == torch.__version__.partition("+")[0]
    if device == "cpu":
        return  # there is no torch.npu
    import torch_npu.npu as module
    from torch_npu.npu import amp
    from torch_npu.npu.amp import GradScaler, autocast

    assert module is torch_npu.npu is torch.npu and amp is torch.npu.amp
    assert torch.distributed.is_hccl_available()  # type: ignore[attr-defined]
    assert torch.utils.checkpoint.DefaultDeviceType.get_device_type() == "npu"
    assert autocast is torch.npu.amp.autocast and GradScaler is torch.npu.amp.GradScaler


def check_programs_can_ask_for_the_backend(device: str) -> None:
    from torch_npu.distributed import is_hccl_available  # type: ignore[import-not-found]

    assert is_hccl_available()
