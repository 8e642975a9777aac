"""Layers with something special about them, on the vendor's plugin and on the CPU; prints how far they differ as JSON.

Run by test_layers.py in a process with the plugin. Each function computes on a device, from the same numbers.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

Check = Callable[[str], Iterable[Tensor]]


def with_gradients(result: Tensor, *inputs: Tensor) -> list[Tensor]:
    """A result, and the gradients of its square by the inputs."""
    return [result, *torch.autograd.grad(result.float().square().sum(), inputs)]


def leaf(device: str, *sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """A tensor of random numbers that has a gradient."""
    return torch.randn(*sizes).to(device, dtype).requires_grad_()


def batch_norm(device: str, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Statistics of the batch, and those that are kept."""
    layer = nn.BatchNorm2d(5).to(device)
    x = leaf(device, 4, 5, 6, 6, dtype=dtype)
    found = with_gradients(layer(x), x, layer.weight, layer.bias)
    again = layer.eval()(x)
    return [*found, layer.running_mean, layer.running_var, *with_gradients(again, x, layer.weight)]


def batch_norm_in_half(device: str) -> list[Tensor]:
    """A half-precision input beside single-precision weights and statistics."""
    return batch_norm(device, torch.float16)


def batch_norm_without_weights(device: str) -> list[Tensor]:
    """Neither weights nor statistics that are kept."""
    x = leaf(device, 4, 5, 6)
    return with_gradients(nn.BatchNorm1d(5, affine=False, track_running_stats=False).to(device)(x), x)


def batch_norm_of_processes(device: str) -> list[Tensor]:
    """The steps of a batch norm over two processes; on the CPU the batch norm of all."""
    parts = [torch.randn(3, 5, 4, 4) + 2, torch.randn(2, 5, 4, 4)]
    weight, bias, grad = torch.randn(5), torch.randn(5), torch.randn(5, 5, 4, 4)
    mean, variance = torch.zeros(5).to(device), torch.ones(5).to(device)
    if device == "cpu":
        x = torch.cat(parts).requires_grad_()
        out = functional.batch_norm(x, mean, variance, weight, bias, training=True)
        return [out, *torch.autograd.grad(out, x, grad), mean, variance]
    xs = [part.to(device) for part in parts]
    statistics = [torch.batch_norm_stats(x, 1e-5) for x in xs]
    counts = torch.tensor([float(x.numel() // 5) for x in xs]).to(device)
    all_mean, all_invstd = torch.batch_norm_gather_stats_with_counts(
        xs[0],
        torch.stack([one[0] for one in statistics]),
        torch.stack([one[1] for one in statistics]),
        mean,
        variance,
        0.1,
        1e-5,
        counts,
    )
    weight, bias, grads = weight.to(device), bias.to(device), grad.to(device).split([3, 2])
    out = [torch.batch_norm_elemt(x, weight, bias, all_mean, all_invstd, 1e-5) for x in xs]
    sums = [
        torch.batch_norm_backward_reduce(g, x, all_mean, all_invstd, weight, True, True, True)
        for g, x in zip(grads, xs, strict=True)
    ]
    by_x = [
        torch.batch_norm_backward_elemt(
            g,
            x,
            all_mean,
            all_invstd,
            weight,
            sums[0][0] + sums[1][0],
            sums[0][1] + sums[1][1],
            counts.to(torch.int32),
        )
        for g, x in zip(grads, xs, strict=True)
    ]
    return [torch.cat(out), torch.cat(by_x), mean, variance]


def norms_in_half(device: str) -> list[Tensor]:
    """Layer norm and group norm, whose statistics the plugin keeps in other types than the CPU."""
    found = []
    for layer in (nn.LayerNorm(8), nn.GroupNorm(2, 4), nn.InstanceNorm1d(4, affine=True)):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            layer = layer.to(device, dtype)
            x = leaf(device, 3, 4, 8, dtype=dtype)
            found += with_gradients(layer(x), x, layer.weight, layer.bias)
    return found


def pooling(device: str) -> list[Tensor]:
    """Kernels with and without room for places in the plugin's mask."""
    found = []
    for kernel, stride, padding in ((1, 2, 0), ((2, 1), 1, (1, 0)), (3, 2, 1), ((1, 3), (2, 1), (0, 1))):
        x = leaf(device, 2, 3, 9, 8)
        found += with_gradients(functional.max_pool2d(x, kernel, stride, padding, ceil_mode=True), x)
    x = leaf(device, 2, 3, 9, 8)
    found += with_gradients(functional.avg_pool2d(x, 3, 2, 1, True, False), x)
    found += with_gradients(functional.avg_pool2d(x, 3, 2, 1, divisor_override=5), x)
    return found


def convolutions(device: str) -> list[Tensor]:
    """Grouped, dilated, transposed, without a bias."""
    found = []
    for layer in (
        nn.Conv2d(4, 6, 3, 2, 1, 2, groups=2),
        nn.Conv1d(4, 4, 3, groups=4, bias=False),
        nn.ConvTranspose2d(4, 6, 3, 2, 1, output_padding=1, groups=2),
        nn.Conv3d(4, 2, (1, 3, 3)),
    ):
        layer = layer.to(device)
        x = leaf(device, 2, 4, *(7,) * (layer.weight.dim() - 2))
        found += with_gradients(layer(x), x, *layer.parameters())
    return found


def deformable_convolution(device: str) -> list[Tensor]:
    """The plugin's, whose offsets across come before those down, then the factors; on the CPU by sampling a grid."""
    x, weight, bias = leaf(device, 2, 4, 7, 6), leaf(device, 6, 2, 3, 3), leaf(device, 6)
    down, across = leaf(device, 2, 2 * 9, 4, 3), leaf(device, 2, 2 * 9, 4, 3)
    mask = torch.rand(2, 2 * 9, 4, 3).to(device).requires_grad_()
    if device == "cpu":
        out = deformed_by_grid(x, weight, bias, down, across, mask)
    else:
        import torch_npu

        out, _ = torch_npu.npu_deformable_conv2d(
            x,
            weight,
            torch.cat([across, down, mask], 1),
            bias,
            kernel_size=[3, 3],
            stride=[1, 1, 2, 2],
            padding=[1, 1, 1, 1],
            dilation=[1, 1, 1, 1],
            groups=2,
            deformable_groups=2,
            modulated=True,
        )
    return with_gradients(out, x, weight, bias, down, across, mask)


def deformed_by_grid(
    x: Tensor, weight: Tensor, bias: Tensor, down: Tensor, across: Tensor, mask: Tensor
) -> Tensor:
    """Stride 2, padding 1, two groups of channels that have offsets and weights of their own."""
    _, _, height, width = x.shape
    rows, columns = torch.arange(4)[:, None] * 2 - 1, torch.arange(3)[None] * 2 - 1
    parts = []
    for group in range(2):
        samples = []
        for element in range(9):
            at = group * 9 + element
            row = rows + element // 3 + down[:, at]
            column = columns + element % 3 + across[:, at]
            grid = torch.stack([column * 2 / (width - 1) - 1, row * 2 / (height - 1) - 1], -1)
            found = functional.grid_sample(x[:, group * 2 : group * 2 + 2], grid, align_corners=True)
            samples.append(found * mask[:, at, None])
        kernels = weight[group * 3 : group * 3 + 3].flatten(2)
        parts.append(torch.einsum("kncij,ock->noij", torch.stack(samples), kernels))
    return torch.cat(parts, 1) + bias[:, None, None]


def losses(device: str) -> list[Tensor]:
    """Weights, ignored classes, smoothing, ends of sequences."""
    logits, classes = leaf(device, 6, 5), torch.tensor([0, 4, 2, -100, 1, 3]).to(device)
    weight = torch.rand(5).to(device)
    found = []
    for reduction in ("mean", "sum", "none"):
        for smoothing in (0.0, 0.1):
            loss = functional.cross_entropy(
                logits, classes, weight, reduction=reduction, label_smoothing=smoothing
            )
            found += with_gradients(loss, logits)
        wanted = torch.rand(6, 5).to(device)
        loss = functional.binary_cross_entropy_with_logits(
            logits, wanted, weight, reduction=reduction, pos_weight=weight + 1
        )
        found += with_gradients(loss, logits)
        loss = functional.kl_div(logits.log_softmax(1), wanted, reduction=reduction)
        found += with_gradients(loss, logits)
    for zero_infinity in (False, True):
        scores = leaf(device, 9, 3, 5)
        labels = torch.randint(1, 5, (3, 4)).to(device)
        loss = functional.ctc_loss(
            scores.log_softmax(2), labels, (9, 7, 8), (4, 2, 3), zero_infinity=zero_infinity
        )
        found += with_gradients(loss, scores)
    return found


def fused_cross_entropy(device: str) -> list[Tensor]:
    """The plugin's own function."""
    logits, classes, weight = leaf(device, 6, 5), torch.tensor([0, 4, 2, 1, 1, 3]).to(device), torch.rand(5)
    if device == "cpu":
        return with_gradients(
            functional.cross_entropy(logits, classes, weight, ignore_index=2, label_smoothing=0.1), logits
        )
    import torch_npu

    loss = torch_npu.npu_cross_entropy_loss(
        logits, classes, weight.to(device), ignore_index=2, label_smoothing=0.1
    )[0]
    return with_gradients(loss.reshape([]), logits)


def embeddings(device: str) -> list[Tensor]:
    """Padding, a limit of the norm, counts, bags."""
    words = torch.tensor([[1, 2, 1], [0, 3, 1]]).to(device)
    found = []
    for options in ({"padding_idx": 1}, {"max_norm": 1.0}, {"scale_grad_by_freq": True}):
        layer = nn.Embedding(5, 4, **options).to(device)
        found += with_gradients(layer(words), layer.weight)
    for mode in ("sum", "mean", "max"):
        table = torch.randn(5, 4).to(device)
        ends = torch.tensor([0, 2, 2, 5]).to(device)
        found.append(functional.embedding_bag(words.flatten(), table, ends, mode=mode))
    return [*found, functional.one_hot(words, 4)]


def recurrent(device: str) -> list[Tensor]:
    """Cells, layers without a bias, both ways, states that are given."""
    found = []
    x = leaf(device, 5, 3, 4)
    for layer in (
        nn.LSTM(4, 6, bias=False),
        nn.LSTM(4, 6, 2, bias=False),
        nn.LSTM(4, 6, bidirectional=True),
        nn.GRU(4, 6, 2, bias=False),
        nn.GRU(4, 6, bidirectional=True),
        nn.RNN(4, 6),
    ):
        layer = layer.to(device)
        out, states = layer(x)
        states = states if isinstance(states, tuple) else (states,)
        ends = torch.cat([state.flatten() for state in states])
        found += [*with_gradients(out, x, *layer.parameters()), ends]
    hidden, cells = leaf(device, 1, 3, 6), leaf(device, 1, 3, 6)
    layer = nn.LSTM(4, 6).to(device)
    out, (last, kept) = layer(x, (hidden, cells))
    found += with_gradients(torch.cat([out, last, kept]), x, hidden, cells, *layer.parameters())
    for cell in (nn.LSTMCell(4, 6), nn.GRUCell(4, 6)):
        cell = cell.to(device)
        state = (hidden[0], cells[0]) if isinstance(cell, nn.LSTMCell) else hidden[0]
        after = cell(x[0], state)
        after = torch.cat(after) if isinstance(after, tuple) else after
        found += with_gradients(after, x, hidden, *cell.parameters())
    return found


def packed(device: str) -> list[Tensor]:
    """Sequences of different lengths; the plugin leaves the padding in, and so the packing's own gradient is wrong."""
    x, lengths = torch.randn(5, 3, 4).to(device), torch.tensor([5, 3, 2])
    found = []
    for layer in (nn.LSTM(4, 6), nn.LSTM(4, 6, 2), nn.LSTM(4, 6, 2, bidirectional=True)):
        layer = layer.to(device)
        out, (hidden, cells) = layer(pack_padded_sequence(x, lengths))
        found += [*with_gradients(pad_packed_sequence(out)[0], *layer.parameters()), hidden, cells]
    return found


def recurrent_in_half(device: str) -> list[Tensor]:
    """In types for which the plugin takes its older functions, too; on the CPU in single precision."""
    found = []
    for dtype in (torch.float16, torch.bfloat16):
        for layer in (nn.LSTM(4, 6), nn.GRU(4, 6)):
            rounded = layer.to(dtype).to(device, torch.float32 if device == "cpu" else dtype)
            x = torch.randn(5, 3, 4).to(dtype).to(device, rounded.weight_ih_l0.dtype).requires_grad_()
            out, _ = rounded(x)
            found += [one.float() for one in with_gradients(out, x, *rounded.parameters())]
    return found


# How far the device's results may be from the CPU's: 0 is the same bits.
CHECKS: dict[Check, float] = {
    batch_norm: 0,
    batch_norm_in_half: 0,
    batch_norm_without_weights: 0,
    batch_norm_of_processes: 1e-5,
    norms_in_half: 0,
    pooling: 0,
    convolutions: 0,
    deformable_convolution: 1e-3,
    losses: 0,
    fused_cross_entropy: 1e-6,
    embeddings: 0,
    recurrent: 1e-5,
    packed: 1e-5,
    recurrent_in_half: 0.05,
}


def distance(check: Check) -> float:
    """The greatest difference between the two devices."""
    found = []
    for device in ("cpu", "npu"):
        torch.manual_seed(3)
        found.append([one.detach().double().cpu() for one in check(device)])
    wanted, given = found
    assert [one.shape for one in wanted] == [one.shape for one in given]
    equal = (torch.equal(*pair) for pair in zip(wanted, given, strict=True))
    apart = ((one - other).abs().max().item() for one, other in zip(wanted, given, strict=True))
    return max(0.0 if same else far for same, far in zip(equal, apart, strict=True))


def main() -> int:
    """Compute all of them."""
    torch.set_num_threads(1)
    answers: dict[str, tuple[float | str, float]] = {}
    for check, most in CHECKS.items():
        try:
            answers[check.__name__] = distance(check), most
        except Exception:
            answers[check.__name__] = traceback.format_exc(), most
    print(json.dumps(answers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
