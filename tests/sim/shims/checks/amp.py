"""apex.amp: what each level computes in, how the scale moves, what a checkpoint keeps."""

from __future__ import annotations

import copy
from contextlib import contextmanager
from typing import Any

import torch
from apex import amp  # type: ignore[import-not-found]
from torch import Tensor, nn

from tests.sim.shims.nets import batches, small_net

STEPS = 5


def make(device: str, level: str, **settings: Any) -> tuple[nn.Module, torch.optim.Optimizer]:
    net = small_net(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
    prepared: tuple[nn.Module, torch.optim.Optimizer] = amp.initialize(
        net, optimizer, opt_level=level, verbosity=0, **settings
    )
    return prepared


def train(net: nn.Module, optimizer: Any, steps: int, device: str) -> list[float]:
    losses = []
    for images, classes in batches(steps, device):
        loss = nn.functional.cross_entropy(net(images), classes)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def single_precision(device: str) -> list[float]:
    """The losses of the same training without amp."""
    net = small_net(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
    losses = []
    with amp.disable_casts():
        for images, classes in batches(STEPS, device):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(images), classes)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@contextmanager
def raises(kind: type[Exception], part: str) -> Any:
    try:
        yield
    except kind as error:
        assert part in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}")


def dtypes_seen(net: nn.Module, images: Tensor) -> dict[str, torch.dtype]:
    """The dtype that each layer's output has inside the net."""
    seen: dict[str, torch.dtype] = {}

    def note(name: str) -> Any:
        return lambda _layer, _inputs, output: seen.__setitem__(name, output.dtype)

    hooks = [layer.register_forward_hook(note(type(layer).__name__)) for layer in net.children()]
    net(images)
    for hook in hooks:
        hook.remove()
    return seen


def check_o0_is_single_precision(device: str) -> None:
    net, optimizer = make(device, "O0")
    losses = train(net, optimizer, STEPS, device)
    assert losses == single_precision(device)
    assert {param.dtype for param in net.parameters()} == {torch.float32}
    assert amp.state_dict()["loss_scaler0"]["loss_scale"] == 1.0


def check_o1_computes_in_half_where_it_is_safe(device: str) -> None:
    net, optimizer = make(device, "O1", loss_scale=128.0)
    images, classes = next(batches(1, device))
    seen = dtypes_seen(net, images)
    assert seen["Conv2d"] == seen["Linear"] == torch.float16, seen
    assert {param.dtype for param in net.parameters()} == {torch.float32}
    assert nn.functional.cross_entropy(net(images), classes).dtype == torch.float32
    losses = train(net, optimizer, STEPS, device)
    wide = single_precision(device)
    assert losses != wide
    torch.testing.assert_close(losses, wide, rtol=0.02, atol=0.02)


def check_o1_sees_new_weights_after_a_step(device: str) -> None:
    net, optimizer = make(device, "O1", loss_scale=1.0)
    images, _ = next(batches(1, device))
    before = net(images).float()
    train(net, optimizer, 1, device)
    assert not torch.equal(before, net(images).float())


def check_casts_can_be_turned_off(device: str) -> None:
    net, _ = make(device, "O1")
    images, _ = next(batches(1, device))
    with amp.disable_casts():
        assert set(dtypes_seen(net, images).values()) == {torch.float32}
    assert dtypes_seen(net, images)["Linear"] == torch.float16


def check_o2_keeps_batchnorm_and_masters_in_single(device: str) -> None:
    net, optimizer = make(device, "O2", loss_scale=1024.0)
    kinds = {name: param.dtype for name, param in net.named_parameters()}
    assert kinds["0.weight"] == kinds["4.bias"] == torch.float16
    assert kinds["1.weight"] == kinds["1.bias"] == torch.float32
    assert net[1].running_mean.dtype == torch.float32  # type: ignore[index]
    images, _ = next(batches(1, device))
    assert net(images).dtype == torch.float32
    losses = train(net, optimizer, STEPS, device)
    torch.testing.assert_close(losses, single_precision(device), rtol=0.02, atol=0.02)
    masters = list(amp.master_params(optimizer))
    assert {master.dtype for master in masters} == {torch.float32}
    for param, master in zip(net.parameters(), masters, strict=True):
        assert torch.equal(param, master.to(param.dtype))


def check_o2_steps_that_half_can_not_hold_add_up(device: str) -> None:
    net = nn.Linear(4, 1, bias=False).to(device)
    with torch.no_grad():
        net.weight.fill_(1.0)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    net, optimizer = amp.initialize(net, optimizer, opt_level="O2", loss_scale=1.0, verbosity=0)
    for _ in range(50):
        with amp.scale_loss(net(torch.ones(1, 4, device=device)).sum(), optimizer) as loss:
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert abs(net.weight.detach().float().mean().item() - 0.995) < 1e-3


def check_o3_is_half_throughout(device: str) -> None:
    net, optimizer = make(device, "O3")
    assert {param.dtype for param in net.parameters()} == {torch.float16}
    assert len(train(net, optimizer, 2, device)) == 2
    assert next(amp.master_params(optimizer)) is next(net.parameters())


def check_static_scale_unscales_gradients(device: str) -> None:
    images, classes = next(batches(1, device))
    for level in ("O1", "O2"):
        found = []
        for scale in (1.0, 1024.0):
            net, optimizer = make(device, level, loss_scale=scale)
            loss = nn.functional.cross_entropy(net(images), classes)
            with amp.scale_loss(loss, optimizer) as scaled:
                assert abs(scaled.item() - scale * loss.item()) < 1e-3 * scale
                scaled.backward()
            found.append([master.grad.clone() for master in amp.master_params(optimizer)])
        for plain, scaled_gradient in zip(*found, strict=True):
            torch.testing.assert_close(plain, scaled_gradient, rtol=1e-2, atol=1e-4)


def check_overflow_skips_the_step_and_halves_the_scale(device: str) -> None:
    for level in ("O1", "O2"):
        net, optimizer = make(device, level, loss_scale="dynamic")
        images, classes = next(batches(1, device))
        train(net, optimizer, 1, device)
        before = [param.detach().clone() for param in amp.master_params(optimizer)]
        scale = amp._amp_state.loss_scalers[0].loss_scale()
        loss = nn.functional.cross_entropy(net(images), classes) * float("inf")
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
        for param, old in zip(amp.master_params(optimizer), before, strict=True):
            assert torch.equal(param, old)
        assert amp._amp_state.loss_scalers[0].loss_scale() == scale / 2
        train(net, optimizer, 1, device)
        assert any(
            not torch.equal(param, old)
            for param, old in zip(amp.master_params(optimizer), before, strict=True)
        )


def check_dynamic_scale_grows_after_a_window(device: str) -> None:
    net, optimizer = make(device, "O1", scale_window=3, dynamic_init_scale=64.0, max_loss_scale=256.0)
    scaler = amp._amp_state.loss_scalers[0]
    assert scaler.loss_scale() == 64.0
    seen = []
    for _ in range(12):
        train(net, optimizer, 1, device)
        seen.append(scaler.loss_scale())
    assert seen == [64.0] * 2 + [128.0] * 3 + [256.0] * 7


def check_scale_begins_at_65536_and_has_a_floor(device: str) -> None:
    make(device, "O2")
    assert amp.state_dict() == {"loss_scaler0": {"loss_scale": 65536.0, "unskipped": 0}}
    make(device, "O2", min_loss_scale=50000.0)
    scaler = amp._amp_state.loss_scalers[0]
    assert scaler.update_scale(True) and scaler.loss_scale() == 50000.0


def check_combined_gradients_are_the_same(device: str) -> None:
    for level in ("O1", "O2"):
        net, optimizer = make(device, level, loss_scale=128.0)
        apart = train(net, optimizer, STEPS, device)
        net, optimizer = make(device, level, loss_scale=128.0, combine_grad=True)
        assert train(net, optimizer, STEPS, device) == apart


def check_a_checkpoint_continues(device: str) -> None:
    for level in ("O0", "O1", "O2", "O3"):
        net, optimizer = make(device, level, loss_scale=None)
        train(net, optimizer, 3, device)
        saved = copy.deepcopy((net.state_dict(), optimizer.state_dict(), amp.state_dict()))
        if level == "O2":
            assert {value.dtype for value in saved[0].values() if value.is_floating_point()} == {
                torch.float32
            }
        rest = train(net, optimizer, 2, device)
        net, optimizer = make(device, level, loss_scale=None)
        net.load_state_dict(saved[0])
        optimizer.load_state_dict(saved[1])
        amp.load_state_dict(saved[2])
        assert amp.state_dict() == saved[2]
        again = train(net, optimizer, 2, device)
        tolerance = 0.01 if level == "O2" else 0.0  # masters begin again at what float16 held
        torch.testing.assert_close(again, rest, rtol=tolerance, atol=tolerance)


def check_an_optimizers_state_is_not_rounded_by_a_checkpoint(device: str) -> None:
    net, optimizer = make(device, "O2", loss_scale=1.0)
    train(net, optimizer, 2, device)
    saved = copy.deepcopy(optimizer.state_dict())
    _, again = make(device, "O2", loss_scale=1.0)
    again.load_state_dict(saved)
    again.zero_grad()
    buffers = [state["momentum_buffer"] for state in again.state.values()]
    expected = [state["momentum_buffer"] for state in saved["state"].values()]
    assert all(map(torch.equal, buffers, expected))
    assert any(not torch.equal(buffer, buffer.half().float()) for buffer in buffers)


def check_gradients_of_two_backwards_add_up(device: str) -> None:
    first, second = list(batches(2, device))
    for level, delay in (("O1", False), ("O1", True), ("O2", False), ("O2", True)):
        net, optimizer = make(device, level, loss_scale=64.0)
        net.eval()
        for index, (images, classes) in enumerate((first, second)):
            loss = nn.functional.cross_entropy(net(images), classes)
            with amp.scale_loss(loss, optimizer, delay_unscale=delay and index == 0) as scaled:
                scaled.backward()
        total = [master.grad.clone() for master in amp.master_params(optimizer)]
        reference = small_net(device).eval()
        with amp.disable_casts():
            for images, classes in (first, second):
                nn.functional.cross_entropy(reference(images), classes).backward()
        for gradient, param in zip(total, reference.parameters(), strict=True):
            torch.testing.assert_close(gradient, param.grad, rtol=0.03, atol=3e-3)


def check_each_loss_has_its_scale(device: str) -> None:
    net, optimizer = make(device, "O1", num_losses=2)
    images, _ = next(batches(1, device))
    with amp.scale_loss(net(images).float().sum() * float("inf"), optimizer, loss_id=1) as scaled:
        scaled.backward()
    states = amp.state_dict()
    assert states["loss_scaler0"]["loss_scale"] == 65536.0
    assert states["loss_scaler1"]["loss_scale"] == 32768.0


def check_lists_come_back_as_lists(device: str) -> None:
    nets = [small_net(device), small_net(device)]
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
    given = amp.initialize(nets, optimizers, opt_level="O0", verbosity=0)
    assert given[0] is nets and given[1] is optimizers
    assert amp.initialize(nets[0], opt_level="O0", verbosity=0) is nets[0]


def check_disabled_does_nothing(device: str) -> None:
    net = small_net(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    amp.initialize(net, optimizer, enabled=False, opt_level="O2", verbosity=0)
    loss = net(next(batches(1, device))[0]).sum()
    with amp.scale_loss(loss, optimizer) as same:
        assert same is loss
    assert next(net.parameters()).dtype == torch.float32


def check_settings_that_do_not_go_together_are_refused(device: str) -> None:
    with raises(RuntimeError, "Unexpected optimization level O4"):
        make(device, "O4")
    with raises(RuntimeError, "keep_batchnorm_fp32 can't be set with opt_level='O1'"):
        make(device, "O1", keep_batchnorm_fp32=True)
    with raises(RuntimeError, "master_weights can't be set"):
        make(device, "O1", master_weights=True)
    with raises(RuntimeError, "combine_grad=True works only with"):
        make(device, "O3", combine_grad=True)
    with raises(RuntimeError, "is torch.float16, expected torch.float32"):
        amp.initialize(small_net(device).half(), opt_level="O2", verbosity=0)


def check_keep_batchnorm_takes_strings(device: str) -> None:
    net, _ = make(device, "O3", keep_batchnorm_fp32="True")
    assert net[1].weight.dtype == torch.float32  # type: ignore[index]


def check_registered_functions_are_cast(device: str) -> None:
    functions: Any = type("Functions", (), {})
    functions.double = staticmethod(lambda tensor: tensor * 2)
    functions.triple = staticmethod(lambda tensor: tensor * 3)
    amp.register_half_function(functions, "double")
    amp.register_float_function(functions, "triple")
    add = amp.promote_function(lambda left, right: (left.dtype, right.dtype))
    value = torch.ones(2, device=device)
    assert functions.double(value).dtype == torch.float32
    make(device, "O1")
    assert functions.double(value).dtype == torch.float16
    assert functions.triple(value.half()).dtype == torch.float32
    assert add(value, value.half()) == (torch.float32, torch.float32)
    with raises(ValueError, "No function named missing"):
        amp.register_half_function(functions, "missing")


def check_closures_are_refused(device: str) -> None:
    _, optimizer = make(device, "O0")
    with raises(RuntimeError, "does not support closure"):
        optimizer.step(lambda: 0.0)


def check_a_scheduler_made_after_initialize_leaves_amp_in_charge(device: str) -> None:
    net, optimizer = make(device, "O2", loss_scale=8.0)
    torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)  # it binds the optimizer's step anew
    losses = train(net, optimizer, 3, device)
    assert losses == train(*make(device, "O2", loss_scale=8.0), 3, device)
    assert optimizer.param_groups[0]["params"][0].dtype == torch.float32  # a master


def check_groups_can_join_late(device: str) -> None:
    net, optimizer = make(device, "O2", loss_scale=1.0)
    train(net, optimizer, 1, device)
    late = nn.Parameter(torch.ones(3, device=device, dtype=torch.float16))
    optimizer.add_param_group({"params": [late]})
    loss = net(next(batches(1, device))[0]).sum() + late.float().sum()
    with amp.scale_loss(loss, optimizer) as scaled:
        scaled.backward()
    optimizer.step()
    assert late.detach()[0].item() < 1.0
    assert optimizer.param_groups[-1]["params"][0].dtype == torch.float32


def check_fused_optimizers_train_under_amp(device: str) -> None:
    from apex import optimizers

    for name in ("NpuFusedSGD", "NpuFusedAdam", "NpuFusedLamb", "FusedAdam", "FusedSGD"):
        for level in ("O1", "O2"):
            net = small_net(device)
            settings = {"lr": 0.01}
            optimizer = getattr(optimizers, name)(net.parameters(), **settings)
            net, optimizer = amp.initialize(
                net, optimizer, opt_level=level, loss_scale=128.0, verbosity=0, combine_grad=True
            )
            losses = train(net, optimizer, 4, device)
            assert losses[-1] == losses[-1] and losses[-1] != losses[0], (name, level, losses)


def check_all_gradients_can_be_clipped_at_once(device: str) -> None:
    images, classes = next(batches(1, device))
    for level in ("O1", "O2"):
        found = []
        for by_hand in (True, False):
            net, optimizer = make(device, level, loss_scale=128.0, combine_grad=True)
            target: Any = optimizer
            with amp.scale_loss(nn.functional.cross_entropy(net(images), classes), optimizer) as scaled:
                scaled.backward()
            if by_hand:
                buffers = target.get_optimizer_combined_grads()
                assert len(buffers) == 1 and buffers[0].numel() == sum(p.numel() for p in net.parameters())
                buffers[0].mul_(0.5 / (buffers[0].norm() + 1e-6))
            else:
                assert target.clip_optimizer_grad_norm_fused(0.5) > 0.5
            found.append([master.grad.clone() for master in amp.master_params(optimizer)])
        torch.testing.assert_close(*found)
        total = torch.cat([gradient.flatten() for gradient in found[0]]).norm()
        torch.testing.assert_close(total.item(), 0.5, rtol=1e-4, atol=1e-4)


def check_fused_optimizers_clip_under_amp(device: str) -> None:
    from apex.optimizers import NpuFusedSGD

    net = small_net(device)
    images, classes = next(batches(1, device))
    optimizer = NpuFusedSGD(net.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer, opt_level="O2", loss_scale=64.0, verbosity=0)
    with amp.scale_loss(nn.functional.cross_entropy(net(images), classes), optimizer) as scaled:
        scaled.backward()
    assert optimizer.clip_grad_norm_fused_(0.1) > 0.1
    total = torch.cat([master.grad.flatten() for master in amp.master_params(optimizer)]).norm()
    assert abs(total.item() - 0.1) < 1e-4


def check_outputs_can_stay_half(device: str) -> None:
    net, _ = make(device, "O2", cast_model_outputs=torch.float16)
    assert net(next(batches(1, device))[0]).dtype == torch.float16


def check_models_can_be_copied(device: str) -> None:
    net, optimizer = make(device, "O2", loss_scale=1.0)
    twin = copy.deepcopy(net)
    train(net, optimizer, 1, device)
    images, _ = next(batches(1, device))
    assert twin(images).dtype == torch.float32
    assert not torch.equal(twin(images), net(images))
