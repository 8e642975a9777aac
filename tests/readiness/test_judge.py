"""What a vendor's adapter does with each operator of a program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.readiness.samples import make_use
from torchferry.errors import InputError
from torchferry.readiness.judge import judge, moved_bytes, predicted_fallbacks
from torchferry.readiness.model import (
    Capture,
    OperatorSite,
    OperatorSupport,
    Phase,
    TensorSpec,
    Use,
    UseJudgement,
)
from torchferry.vendors.model import Vendor
from torchferry.vendors.ops import load_ops
from torchferry.vendors.registry import get_vendor, vendor_names

SITE = OperatorSite(Phase.FORWARD, "layer", "train.py:3")
ROW = TensorSpec("float32", (4, 5))
COMPLETE = [name for name in vendor_names() if load_ops(Path(get_vendor(name).folder)).complete]


@pytest.fixture
def acme(tmp_path: Path) -> Vendor:
    """A vendor with few operators, two adapter versions, and an adapter that falls back."""
    (tmp_path / "ops.txt").write_text(
        "# complete: yes\n# versions: 2.1 2.4\nmm.out 2.1 2.4\nconvolution_overrideable 2.1 2.4 =float32\n"
        "relu 2.1 2.4\nlgamma.out 2.1\nhspmm 2.1 2.4 ~sparse\nembedding 2.1 2.4\n_index_put_impl_ 2.1 2.4 | not in place\n"
        "torchvision::nms 2.4\nsoftmax.int 2.1 2.4\n"
    )
    vendor = get_vendor("ascend")
    limits = replace(vendor.limits, operator_version="2.4")
    return replace(vendor, name="acme", folder=str(tmp_path), limits=limits)


def capture(*uses: Use) -> Capture:
    return Capture("train.py", "program", "cpu", uses=uses)


def call(
    operator: str, *specs: TensorSpec, site: OperatorSite = SITE, expanded: bool = False, calls: int = 1
) -> Use:
    names = ("self", "other", "third")
    arguments = tuple(zip(names, specs, strict=False))
    use = make_use(operator, site, *arguments, results=specs[:1], calls=calls)
    return replace(use, expanded=expanded)


def only(vendor: Vendor, *uses: Use, version: str = "") -> UseJudgement:
    (judgement,) = judge(capture(*uses), vendor, version).judgements
    return judgement


@pytest.mark.parametrize(
    ("operator", "support", "reason"),
    [
        ("aten::mm.out", OperatorSupport.KERNEL, "lists a kernel"),
        ("aten::mm", OperatorSupport.STRUCTURED, "aten::mm.out"),
        ("aten::convolution", OperatorSupport.KERNEL, "aten::convolution_overrideable"),
        ("aten::mkldnn_convolution", OperatorSupport.KERNEL, "aten::convolution_overrideable"),
        ("aten::cudnn_convolution", OperatorSupport.KERNEL, "aten::convolution_overrideable"),
        ("aten::cudnn_convolution_backward", OperatorSupport.FALLBACK, "on the CPU"),  # as old traces call it
        ("aten::_scaled_dot_product_flash_attention_for_cpu", OperatorSupport.KERNEL, "Every plugin"),
        (
            "aten::mkldnn_rnn_layer",
            OperatorSupport.FALLBACK,
            "on the CPU",
        ),  # a recurrent layer that the table lacks
        ("aten::std", OperatorSupport.COMPOSITE, "other operators"),
        ("aten::lgamma", OperatorSupport.FALLBACK, "on the CPU"),
        ("aten::hspmm", OperatorSupport.FALLBACK, "only for sparse tensors"),
        ("aten::_index_put_impl_", OperatorSupport.LIMITED, "not in place"),
        ("aten::no_such_operator", OperatorSupport.UNKNOWN, "not in PyTorch's"),
        ("torchvision::nms", OperatorSupport.KERNEL, "lists a kernel"),
        ("torchvision::roi_align", OperatorSupport.UNKNOWN, "belongs to torchvision"),
        ("c10d::allreduce_", OperatorSupport.KERNEL, "hccl"),
    ],
)
def test_one_operator(acme: Vendor, operator: str, support: OperatorSupport, reason: str) -> None:
    judgement = only(acme, call(operator, ROW))
    assert (judgement.support, reason in judgement.reason.en) == (support, True), judgement.reason.en
    assert judgement.reason.zh != judgement.reason.en


def test_an_operator_of_another_library_without_tensors_needs_no_device(acme: Vendor) -> None:
    assert only(acme, call("mylib::mark")).support is OperatorSupport.KERNEL


def test_a_tensor_that_is_not_dense_is_not_what_the_table_speaks_of(acme: Vendor) -> None:
    sparse = TensorSpec("float32", (4, 5), None, "sparse_coo")
    assert only(acme, call("aten::mm", sparse, ROW)).support is OperatorSupport.UNKNOWN
    assert only(acme, call("aten::hspmm", sparse, ROW)).support is OperatorSupport.KERNEL


def test_what_is_missing_raises_if_the_adapter_is_told_so(
    acme: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert only(acme, call("aten::lgamma", ROW)).support is OperatorSupport.FALLBACK
    variable, _, value = acme.limits.raise_when[0].partition("=")
    monkeypatch.setenv(variable, value)
    assert only(acme, call("aten::lgamma", ROW)).support is OperatorSupport.MISSING


def test_versions_of_the_adapter(acme: Vendor) -> None:
    assert only(acme, call("aten::lgamma", ROW), version="2.1").support is OperatorSupport.STRUCTURED
    assert judge(capture(), acme).version == "2.4"
    with pytest.raises(InputError, match=r"acme's plugin 2\.9; choose one of 2\.1, 2\.4"):
        judge(capture(), acme, "2.9")


def test_a_table_without_versions_takes_none() -> None:
    with pytest.raises(InputError, match="leave the version out"):
        judge(capture(), get_vendor("intel"), "2.9")


def test_dtypes_of_one_kernel(acme: Vendor) -> None:
    double = TensorSpec("float64", (4, 5))
    judgement = only(acme, call("aten::convolution", double))
    assert (judgement.support, judgement.reason.en) == (
        OperatorSupport.LIMITED,
        "The kernel accepts only float32, here it gets float64.",
    )
    assert only(acme, call("aten::convolution", ROW, double)).support is OperatorSupport.KERNEL


@pytest.mark.parametrize("name", vendor_names())
def test_dtypes_of_the_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vendor = get_vendor(name)
    for dtype, limit in vendor.limits.dtypes.items():
        if limit.when:
            variable, _, value = limit.when[0].partition("=")
            monkeypatch.setenv(variable, value)
        narrow = TensorSpec(dtype, (4,))
        computed = only(vendor, call("aten::mul.Tensor", narrow, narrow))
        moved = only(vendor, call("aten::index_select", narrow))
        cast = replace(
            call("aten::_to_copy", ROW),
            signature=make_use("aten::_to_copy", SITE, ("self", ROW), results=(narrow,)).signature,
        )
        found = [computed.support, moved.support, only(vendor, cast).support]
        limited = [support is OperatorSupport.LIMITED for support in found]
        assert (
            limited
            == {
                "refused": [True, True, True],
                "computed_as": [True, False, False],
                "cast_as": [False, False, True],
            }[limit.narrowing.value]
        )


def test_bytes_there_and_back(acme: Vendor) -> None:
    out_of_place = only(acme, call("aten::hypot", ROW, ROW, calls=3))
    assert out_of_place.moved_bytes == 3 * (80 + 80 + 80)
    in_place = make_use("aten::_foreach_lgamma_", SITE, ("self", (ROW, ROW)))
    assert moved_bytes(in_place.signature) == 2 * 80 + 2 * 80
    assert only(acme, call("aten::mm", ROW, ROW)).moved_bytes == 0


def test_a_composite_operator_with_a_kernel_is_taken_whole(acme: Vendor) -> None:
    inside = replace(SITE, inside="aten::embedding")
    deeper = replace(SITE, inside="aten::index_select")
    uses = (
        call("aten::embedding", ROW, expanded=True),
        call("aten::index_select", ROW, site=inside, expanded=True),
        call("aten::hypot", ROW, site=deeper),
    )
    found = judge(capture(*uses), acme).judgements
    assert [(judgement.use.operator, judgement.support) for judgement in found] == [
        ("aten::embedding", OperatorSupport.KERNEL)
    ]


def test_of_a_composite_operator_without_kernel_the_parts_count(acme: Vendor) -> None:
    inside = replace(SITE, inside="aten::std")
    uses = (call("aten::std", ROW, expanded=True), call("aten::hypot", ROW, site=inside))
    found = judge(capture(*uses), acme).judgements
    assert [judgement.use.operator for judgement in found] == ["aten::hypot"]


def test_a_part_that_is_also_called_elsewhere_counts(acme: Vendor) -> None:
    inner = call("aten::std", ROW, site=replace(SITE, inside="aten::embedding"), expanded=True)
    outer = call("aten::std", ROW, expanded=True)
    part = call("aten::hypot", ROW, site=replace(SITE, inside="aten::std"))
    assert not judge(capture(inner, part), acme).judgements
    assert [one.use.operator for one in judge(capture(inner, outer, part), acme).judgements] == [
        "aten::hypot"
    ]


def test_what_autograd_takes_apart_is_not_taken_whole(acme: Vendor) -> None:
    inner = call("aten::_softmax", ROW, site=replace(SITE, inside="aten::softmax.int"))
    judgement = only(acme, call("aten::softmax.int", ROW, expanded=True), inner)
    assert judgement.use.operator == "aten::_softmax"
    assert judgement.support.is_problem


def test_convolution_is_whole_even_where_nothing_is_known() -> None:
    inside = replace(SITE, inside="aten::_convolution")
    uses = (
        call("aten::_convolution", ROW, expanded=True),
        call("aten::mkldnn_convolution", ROW, site=inside),
    )
    found = judge(capture(*uses), get_vendor("intel")).judgements
    assert [(one.use.operator, one.support) for one in found] == [
        ("aten::_convolution", OperatorSupport.UNKNOWN)
    ]


def test_the_hosts_work_is_not_judged(acme: Vendor) -> None:
    assert not judge(capture(call("aten::lgamma", ROW, site=OperatorSite(Phase.SETUP))), acme).judgements


def test_fallbacks_have_the_names_that_the_device_reports(acme: Vendor) -> None:
    uses = (
        call("aten::lgamma", ROW, calls=2),
        call("aten::lgamma", ROW, site=replace(SITE, place="train.py:9"), calls=3),
        call("aten::huber_loss", ROW),
        call("aten::mm", ROW),
    )
    assert predicted_fallbacks(judge(capture(*uses), acme)) == {"aten::lgamma.out": 5, "aten::huber_loss": 1}


@pytest.mark.parametrize("name", vendor_names())
def test_ordinary_training_on_every_vendor(name: str) -> None:
    """A complete table has what a small network needs; of the others nothing is called missing."""
    operators = (
        "convolution", "convolution_backward", "native_batch_norm", "relu", "addmm", "native_layer_norm", "_softmax",
        "_log_softmax", "nll_loss_forward", "mkldnn_rnn_layer", "add_.Tensor", "addcdiv_", "no_such_operator",
    )  # fmt: skip
    readiness = judge(capture(*(call(f"aten::{operator}", ROW) for operator in operators)), get_vendor(name))
    assert not readiness.operators(OperatorSupport.FALLBACK, OperatorSupport.MISSING)
    assert "aten::no_such_operator" in readiness.operators(OperatorSupport.UNKNOWN)
    assert readiness.complete == (name in COMPLETE)
    if name in COMPLETE:
        assert readiness.operators(OperatorSupport.UNKNOWN) == ["aten::no_such_operator"]


def test_reports_prove_the_operators_behind_a_function() -> None:
    vendor = get_vendor("tecorigin")
    assert only(vendor, call("aten::native_layer_norm", ROW)).support is OperatorSupport.KERNEL
    assert only(vendor, call("aten::lgamma", ROW)).support is OperatorSupport.UNKNOWN
    assert only(vendor, call("aten::convolution", ROW)).support is OperatorSupport.LIMITED
    assert "FP16" in only(vendor, call("aten::convolution", ROW)).reason.en


def test_an_operator_taken_whole_takes_the_time_of_its_parts(acme: Vendor) -> None:
    whole = replace(call("aten::embedding", ROW, expanded=True), seconds=1.0, calls=1)
    thrice = replace(call("aten::embedding", ROW, ROW, expanded=True), seconds=1.0, calls=3)
    part = replace(call("aten::index_select", ROW, site=replace(SITE, inside="aten::embedding")), seconds=8.0)
    found = judge(capture(whole, thrice, part), acme)
    assert [judgement.use.seconds for judgement in found.judgements] == [3.0, 7.0]
    assert found.seconds == 10.0


def test_without_an_overload_all_must_agree() -> None:
    ascend = get_vendor("ascend")
    assert only(ascend, call("aten::add", ROW, ROW)).support.is_ready
    assert only(ascend, call("aten::histogram", ROW)).support is OperatorSupport.FALLBACK
    assert (
        only(ascend, call("aten::scatter", ROW)).support is OperatorSupport.UNKNOWN
    )  # some have a kernel, some do not
