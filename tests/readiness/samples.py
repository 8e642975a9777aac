"""Captures and judgements made by hand, as a training step gives them: what reports show and files store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torchferry.readiness.model import (
    Advice,
    Argument,
    Capture,
    ModuleInfo,
    OperatorSite,
    OperatorSupport,
    Phase,
    Readiness,
    Remedy,
    Signature,
    Special,
    TensorSpec,
    Use,
    UseJudgement,
)
from torchferry.readiness.report import words
from torchferry.text import Text

HOSTILE = "=cmd|'/c calc'!A1</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>\n\u202eevil"
Judge = Callable[[Use], OperatorSupport]

IMAGE = TensorSpec("float32", (8, 3, 224, 224), (150528, 50176, 224, 1))
WEIGHT = TensorSpec("float32", (64, 3, 7, 7), (147, 49, 7, 1))
FEATURES = TensorSpec("float32", (8, 64, 112, 112), (802816, 1, 7168, 64))
POOLED = TensorSpec("float32", (8, 64, 56, 56), (200704, 3136, 56, 1))
PLACES = TensorSpec("int64", (8, 64, 56, 56), (200704, 3136, 56, 1))
LABELS = TensorSpec("int64", (8,), (1,))
SPARSE = TensorSpec("float64", (10, 10), None, "sparse_coo")

COMPOSITION = Advice(
    Remedy.COMPOSITION,
    Text("pool with unfold and max instead", "改用 unfold 与 max 组合"),
    "def pool(x):\n    return x.unfold(2, 3, 2).unfold(3, 3, 2).amax((-1, -2))",
    "https://example.com/pool",
)
KEEP = Advice(Remedy.KEEP_ON_CPU, Text("leave it on the CPU: it is rarely called", "保留在 CPU 上：很少调用"))


def make_use(
    operator: str,
    site: OperatorSite,
    *arguments: tuple[str, object],
    results: tuple[TensorSpec, ...] = (),
    calls: int = 1,
    seconds: float = 0.0,
    varied: bool = False,
) -> Use:
    """A use, with its arguments as pairs."""
    given = tuple(Argument(name, value) for name, value in arguments)  # type: ignore[arg-type]
    return Use(Signature(operator, given, results), site, calls, seconds, varied=varied)


def training_step() -> Capture:
    """A small network with one convolution, a pooling layer, two blocks and a loss; two steps."""
    stem = OperatorSite(Phase.FORWARD, "conv1", "models/net.py:12")
    pool = OperatorSite(Phase.FORWARD, "maxpool", "models/net.py:13")
    pool_back = OperatorSite(Phase.BACKWARD, "maxpool", "models/net.py:13", "MaxPool2DWithIndicesBackward0")
    loss = OperatorSite(Phase.FORWARD, "", "train.py:7", inside="aten::cross_entropy_loss")
    uses = [
        make_use(
            "aten::randn",
            OperatorSite(Phase.SETUP, "", "train.py:2"),
            ("size", (64, 3)),
            calls=9,
            seconds=0.5,
        ),
        make_use(
            "aten::convolution",
            stem,
            ("input", IMAGE),
            ("weight", WEIGHT),
            ("bias", None),
            ("stride", (2, 2)),
            ("transposed", False),
            results=(FEATURES,),
            calls=2,
            seconds=0.4,
        ),
        make_use(
            "aten::max_pool2d_with_indices",
            pool,
            ("self", FEATURES),
            ("kernel_size", (3, 3)),
            results=(POOLED, PLACES),
            calls=2,
            seconds=0.1,
        ),
        make_use(
            "aten::max_pool2d_with_indices_backward",
            pool_back,
            ("grad_output", POOLED),
            ("self", FEATURES),
            ("indices", PLACES),
            results=(FEATURES,),
            calls=2,
            seconds=0.18,
        ),
        *(
            make_use(
                "aten::add.Tensor",
                OperatorSite(Phase.FORWARD, f"layer{at}.0", "models/net.py:14"),
                ("self", POOLED),
                ("other", POOLED),
                ("alpha", 1.0),
                results=(POOLED,),
                calls=2,
                seconds=0.1,
                varied=at == 2,
            )
            for at in (1, 2)
        ),
        make_use(
            "aten::nll_loss_forward",
            loss,
            ("self", TensorSpec("float32", (8, 10), (10, 1))),
            ("target", LABELS),
            calls=2,
            seconds=0.02,
        ),
        make_use(
            "aten::to_sparse",
            OperatorSite(Phase.OPTIMIZER, "", "train.py:9"),
            ("self", TensorSpec("float64", (10, 10), (10, 1))),
            ("layout", Special("layout", "sparse_coo")),
            results=(SPARSE,),
            calls=1,
            seconds=0.1,
        ),
    ]
    expanded = replace(
        make_use("aten::cross_entropy_loss", OperatorSite(Phase.FORWARD, "", "train.py:7"), calls=2),
        expanded=True,
    )
    return Capture(
        program="train.py --epochs 1",
        origin="program",
        device="cpu",
        torch="2.13.0",
        steps=2,
        seconds=1.9,
        uses=(*uses, expanded),
        modules=(
            ModuleInfo("", "Net"),
            ModuleInfo("conv1", "Conv2d"),
            ModuleInfo("maxpool", "MaxPool2d"),
            ModuleInfo("layer1", "Sequential"),
            ModuleInfo("layer1.0", "Block"),
            ModuleInfo("layer2", "Sequential"),
            ModuleInfo("layer2.0", "Block"),
            ModuleInfo("unused", "Identity"),
        ),
        notes=("varied",),
    )


def by_name(**supports: OperatorSupport) -> Judge:
    """Judges operators by their base names; those that are not named have kernels."""

    def judge(use: Use) -> OperatorSupport:
        return supports.get(use.operator.removeprefix("aten::").partition(".")[0], OperatorSupport.KERNEL)

    return judge


def judged(
    capture: Capture, vendor: str, judge: Judge, *, version: str = "2.13", complete: bool = True
) -> Readiness:
    """A capture with a support for each use; problems get a reason, bytes and advice."""
    judgements = []
    for use in capture.judged():
        support = judge(use)
        moved = sum(spec.bytes for spec in [*use.signature.inputs, *use.signature.outputs]) * use.calls
        advice = {OperatorSupport.FALLBACK: (COMPOSITION, KEEP), OperatorSupport.MISSING: (KEEP,)}.get(
            support, ()
        )
        reason = Text(f"the table says {support.value}", f"算子表：{words.SUPPORT[support].name.zh}")
        judgements.append(
            UseJudgement(use, support, reason, moved if support is OperatorSupport.FALLBACK else 0, advice)
        )
    return Readiness(capture, vendor, vendor[:3], version, complete, tuple(judgements))


def sample() -> list[Readiness]:
    """The training step on four devices: a fallback, a missing and a limited operator, gaps in a table, no table."""
    capture = training_step()
    return [
        judged(capture, "ascend", by_name(max_pool2d_with_indices_backward=OperatorSupport.FALLBACK)),
        judged(
            capture,
            "cambricon",
            by_name(
                to_sparse=OperatorSupport.MISSING,
                add=OperatorSupport.LIMITED,
                max_pool2d_with_indices_backward=OperatorSupport.STRUCTURED,
            ),
        ),
        judged(capture, "tecorigin", by_name(nll_loss_forward=OperatorSupport.UNKNOWN), complete=False),
        judged(capture, "intel", lambda use: OperatorSupport.UNKNOWN, version="", complete=False),
    ]


def one_device() -> list[Readiness]:
    """The first of the sample alone."""
    return sample()[:1]


def whole_or_parts() -> list[Readiness]:
    """One device takes the composite loss whole, in the time of its parts; the other takes its part."""
    capture = training_step()
    parts = judged(capture, "ascend", by_name(nll_loss_forward=OperatorSupport.FALLBACK))
    (whole,) = [replace(use, seconds=0.02) for use in capture.uses if use.expanded]
    judgements = [each for each in parts.judgements if each.use.site.inside != whole.operator]
    judgements.append(UseJudgement(whole, OperatorSupport.KERNEL, Text("it has a kernel", "有 kernel")))
    return [parts, replace(parts, vendor="cambricon", judgements=tuple(judgements))]


def without_times() -> list[Readiness]:
    """As a run with shapes only gives it."""
    capture = training_step()
    capture = replace(
        capture,
        device="meta",
        seconds=0.0,
        steps=0,
        uses=tuple(replace(use, seconds=0.0) for use in capture.uses),
    )
    return [judged(capture, "ascend", by_name(max_pool2d_with_indices_backward=OperatorSupport.FALLBACK))]


def empty() -> list[Readiness]:
    """A program that called nothing."""
    return [judged(Capture("nothing.py", "program", "cpu"), "ascend", by_name())]


def hostile() -> list[Readiness]:
    """Every text is one that would do harm if it were taken for more than text."""
    spec = TensorSpec(HOSTILE, (2,), None, HOSTILE, HOSTILE)
    uses = [
        make_use(name, OperatorSite(Phase.FORWARD, HOSTILE, place, HOSTILE, HOSTILE), (HOSTILE, spec), (HOSTILE, HOSTILE),
                 (HOSTILE, Special(HOSTILE, HOSTILE)), seconds=0.1)
        for name, place in ((HOSTILE, f"{HOSTILE}:3"), ("+1", "../../etc/passwd:1"), ("@x", "\udcff.py:2"), ("-1", ""))
    ]  # fmt: skip
    capture = Capture(
        HOSTILE, HOSTILE, "cpu", HOSTILE, 1, 1.0, 1, tuple(uses), (ModuleInfo(HOSTILE, HOSTILE),), (HOSTILE,)
    )
    advice = Advice(Remedy.COMPOSITION, Text(HOSTILE, HOSTILE), HOSTILE, "javascript:window.hacked=1")
    judgements = tuple(
        UseJudgement(use, OperatorSupport.FALLBACK, Text(HOSTILE, HOSTILE), 8, (advice,)) for use in uses
    )
    return [Readiness(capture, HOSTILE, HOSTILE, HOSTILE, True, judgements)]


def large(count: int = 5000) -> list[Readiness]:
    """A deep network: so many uses of forty operators in nested modules, on three devices."""
    uses = []
    for at in range(count):
        spec = TensorSpec("float16", (8, at % 97 + 1, 64), ((at % 97 + 1) * 64, 64, 1))
        phase = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)[at % 3]
        module = (
            f"encoder.layers.{at % 48}.{('attention', 'mlp')[at % 2]}.{('query', 'key', 'value')[at % 5 % 3]}"
        )
        site = OperatorSite(phase, module, f"models/encoder.py:{at % 60 + 1}")
        uses.append(make_use(f"aten::operator_{at % 40}", site, ("self", spec), ("alpha", at), results=(spec,),
                             calls=at % 7 + 1, seconds=(at % 40 + 1) * 1e-4))  # fmt: skip
    capture = Capture("large.py", "program", "cpu", "2.13.0", 1, 10.0, uses=tuple(uses))
    return [
        judged(
            capture,
            "ascend",
            by_name(operator_7=OperatorSupport.FALLBACK, operator_33=OperatorSupport.LIMITED),
        ),
        judged(capture, "cambricon", by_name(operator_2=OperatorSupport.MISSING)),
        judged(capture, "moorethreads", by_name()),
    ]


SAMPLES: dict[str, Callable[[], list[Readiness]]] = {
    "sample": sample,
    "one device": one_device,
    "whole or parts": whole_or_parts,
    "without times": without_times,
    "empty": empty,
    "hostile": hostile,
    "large": large,
}
