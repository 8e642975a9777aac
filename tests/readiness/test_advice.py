"""What a user is told to do about an operator that a device lacks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.readiness.samples import make_use
from torchferry.operators.native_functions import operator_facts
from torchferry.operators.support import SupportBasis, VendorTable, served_by, standing
from torchferry.readiness.judge import judge
from torchferry.readiness.model import (
    Advice,
    Capture,
    OperatorSite,
    OperatorSupport,
    Phase,
    Remedy,
    Special,
    TensorSpec,
    Use,
)
from torchferry.vendors.model import Vendor
from torchferry.vendors.ops import load_ops
from torchferry.vendors.registry import get_vendor, vendor_names

SITE = OperatorSite(Phase.FORWARD, "layer", "train.py:3")
ROW = TensorSpec("float32", (4, 5))


def advice(vendor: Vendor, use: Use, version: str = "") -> dict[Remedy, Advice]:
    (judgement,) = judge(Capture("train.py", "program", "cpu", uses=(use,)), vendor, version).judgements
    assert len({one.remedy for one in judgement.advice}) == len(judgement.advice)
    return {one.remedy: one for one in judgement.advice}


def call(operator: str, *arguments: tuple[str, object], site: OperatorSite = SITE) -> Use:
    return make_use(operator, site, ("self", ROW), *arguments, results=(ROW,))


def table_of(vendor: Vendor, folder: Path, *lines: str) -> Vendor:
    (folder / "ops.txt").write_text("\n".join(["# complete: yes", "# versions: 2.1 2.4", *lines, ""]))
    return replace(vendor, folder=str(folder), limits=replace(vendor.limits, operator_version="2.4"))


def test_what_has_a_kernel_needs_no_advice(tmp_path: Path) -> None:
    assert not advice(table_of(get_vendor("ascend"), tmp_path, "lgamma.out 2.4"), call("aten::lgamma"))


def test_another_version_has_it(tmp_path: Path) -> None:
    vendor = table_of(get_vendor("ascend"), tmp_path, "lgamma.out 2.1")
    found = advice(vendor, call("aten::lgamma"))
    assert "torch 2.1 has" in found[Remedy.OTHER_VERSION].text.en
    vendor = table_of(get_vendor("ascend"), tmp_path)
    assert Remedy.OTHER_VERSION not in advice(vendor, call("aten::lgamma"))


def test_a_composition_is_named_only_where_the_device_has_all_of_it(tmp_path: Path) -> None:
    uses = ("bitwise_or.Tensor 2.4", "ge.Tensor 2.4", "isnan 2.4", "where.self 2.4", "scalar_tensor 2.4")
    vendor = table_of(get_vendor("ascend"), tmp_path, *uses)
    found = advice(vendor, call("aten::fmax", ("other", ROW)))
    assert "torch.where(" in found[Remedy.COMPOSITION].code
    assert "tests" in found[Remedy.COMPOSITION].source
    vendor = table_of(get_vendor("ascend"), tmp_path, *(line for line in uses if "where" not in line))
    assert Remedy.COMPOSITION not in advice(vendor, call("aten::fmax", ("other", ROW)))


def test_the_condition_of_a_composition_is_told_in_both_languages() -> None:
    text = advice(get_vendor("ascend"), call("aten::lgamma"))[Remedy.COMPOSITION].text
    assert "input > 0 (Lanczos" in text.en
    assert "Lanczos 近似" in text.zh


def test_the_vendors_own_form(tmp_path: Path) -> None:
    vendor = get_vendor("ascend")
    (tmp_path / "similar.toml").write_bytes((Path(vendor.folder) / "similar.toml").read_bytes())
    use = make_use("aten::_fused_adamw_", OperatorSite(Phase.OPTIMIZER), ("self", (ROW,)))
    own = advice(table_of(vendor, tmp_path), use)[Remedy.VENDOR_OPERATOR]
    assert own.code == "torch_npu.optim.NpuFusedAdamW(...)"
    assert own.source


def test_code_for_the_cpu_does_what_the_operator_does() -> None:
    found = advice(get_vendor("ascend"), call("aten::hypot", ("other", ROW)))
    x, other = torch.rand(4, 5), torch.rand(4, 5)
    space = {"torch": torch, "x": x, "other": other}
    exec(found[Remedy.KEEP_ON_CPU].code, space)
    torch.testing.assert_close(space["result"], torch.hypot(x, other))


@pytest.mark.parametrize(
    "use",
    [
        call("aten::hypot_", ("other", ROW)),  # writes to its argument
        call("aten::hypot", ("other", Special("generator", "cpu"))),  # a value that can't be written
        call("aten::huber_loss_backward.out", site=OperatorSite(Phase.BACKWARD, node="HuberLossBackward0")),
    ],
    ids=["in place", "value", "backward"],
)
def test_no_code_is_better_than_wrong_code(use: Use) -> None:
    assert advice(get_vendor("ascend"), use)[Remedy.KEEP_ON_CPU].code == ""


def test_a_backward_step_follows_its_forward_call() -> None:
    use = call("aten::huber_loss_backward.out", site=OperatorSite(Phase.BACKWARD, node="HuberLossBackward0"))
    found = advice(get_vendor("ascend"), use)
    assert "forward call" in found[Remedy.KEEP_ON_CPU].text.en
    assert "smooth_l1_loss" in found[Remedy.COMPOSITION].code


def test_another_dtype() -> None:
    double = TensorSpec("float64", (4, 5))
    use = make_use("aten::native_layer_norm", SITE, ("input", double), results=(double,))
    assert "float32" in advice(get_vendor("moorethreads"), use)[Remedy.OTHER_DTYPE].text.en


@pytest.mark.parametrize("name", vendor_names())
def test_every_operator_that_a_vendor_lacks_has_advice(name: str) -> None:
    vendor = get_vendor(name)
    table = VendorTable(load_ops(Path(vendor.folder)), vendor.limits.operator_version)
    facts = operator_facts()
    siblings = served_by(facts)
    absent = [
        operator
        for operator, fact in facts.items()
        if standing(fact, siblings.get(operator, ()), table).basis is SupportBasis.ABSENT
    ]
    assert bool(absent) == table.complete
    uses = tuple(call(f"aten::{operator}") for operator in absent)
    readiness = judge(Capture("train.py", "program", "cpu", uses=uses), vendor)
    for judgement in readiness.judgements:
        if judgement.support in (OperatorSupport.FALLBACK, OperatorSupport.MISSING):
            assert judgement.advice[-1].remedy is Remedy.KEEP_ON_CPU
            for one in judgement.advice:
                assert one.text.en != one.text.zh
                compile(one.code, "advice", "exec")
