"""The limits that a simulated device enforces: their wording, their switches, and what is not known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.vendors.test_cli_vendors import ferry_vendors
from torchferry.cli import vendors as command
from torchferry.vendors.model import Limits, MissingOperator, Narrowing
from torchferry.vendors.registry import get_vendor, load_vendor
from torchferry.vendors.schema import meanings

ACME = Path(__file__).parents[2] / "examples" / "vendors" / "acme"


@pytest.mark.parametrize(
    ("vendor", "environment", "expected"),
    [
        ("ascend", {}, "falls_back"),
        ("ascend", {"TORCH_NPU_FALLBACK_CPU_DISABLE": "0"}, "falls_back"),
        ("ascend", {"TORCH_NPU_FALLBACK_CPU_DISABLE": "1"}, "raises"),
        ("cambricon", {"ENABLE_FALLBACK_TO_CPU": "1"}, "falls_back"),
        ("cambricon", {"ENABLE_FALLBACK_TO_CPU": "OFF"}, "raises"),
        ("tecorigin", {}, "raises"),
        ("tecorigin", {"TORCH_SDAA_RUNTIME_AUTOFALLBACK": "1"}, "falls_back"),
        ("moorethreads", {"TORCH_NPU_FALLBACK_CPU_DISABLE": "1"}, "raises"),
    ],
)
def test_missing_operator_follows_the_environment(
    vendor: str, environment: dict[str, str], expected: str
) -> None:
    assert get_vendor(vendor).limits.missing_operator_in(environment).value == expected


def test_error_that_a_switch_brings() -> None:
    limits = get_vendor("ascend").limits
    assert limits.missing_message_in({}).startswith("Could not run '{operator}'")
    switched = limits.missing_message_in({"TORCH_NPU_FALLBACK_CPU_DISABLE": "1"})
    assert "TORCH_NPU_FALLBACK_CPU_DISABLE=1" in switched
    other = get_vendor("cambricon").limits
    assert other.missing_message_in({"ENABLE_FALLBACK_TO_CPU": "0"}) == other.missing_message_in({})


def test_double_precision() -> None:
    assert get_vendor("ascend").limits.dtypes["float64"].narrowing is Narrowing.CAST_AS
    assert get_vendor("cambricon").limits.dtypes["float64"].narrowing is Narrowing.COMPUTED_AS
    assert "float64" not in get_vendor("tecorigin").limits.dtypes
    conditional = get_vendor("moorethreads").limits.dtypes["float64"]
    assert not conditional.applies({}) and conditional.applies({"TORCH_USE_MUSA_DOUBLE_CAST": "on"})


def test_cards_that_saturate() -> None:
    saturation = get_vendor("ascend").limits.saturation
    for card, variables, applies in (
        ("Ascend910A", {}, True),
        ("Ascend910B2", {}, False),
        ("Ascend910B2", {"INF_NAN_MODE_FORCE_DISABLE": "1"}, True),
    ):
        assert saturation.applies(card, variables) is applies
        assert saturation.refusal(card, variables) == ""
    off = {"INF_NAN_MODE_ENABLE": "0"}
    assert "INF_NAN_MODE_FORCE_DISABLE=1" in saturation.refusal("Ascend910B2", off)
    assert saturation.refusal("Ascend910A", off) == ""
    assert not get_vendor("cambricon").limits.saturation.applies("MLU590-M9", off)


def test_sparse_tensors(capsys: pytest.CaptureFixture[str]) -> None:
    expected = {
        "ascend": MissingOperator.RAISES,
        "cambricon": MissingOperator.FALLS_BACK,
        "tecorigin": MissingOperator.RAISES,
    }
    for name, does in expected.items():
        assert get_vendor(name).limits.sparse.missing_operator is does
    ferry_vendors("ascend", "--lang", "en")
    assert "_coalesce" in capsys.readouterr().out


def test_vendor_without_limits(acme: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vendor = load_vendor(acme)
    assert vendor.limits == Limits()
    assert vendor.limits.missing_operator_in({"ANY": "1"}) is MissingOperator.UNKNOWN
    assert vendor.limits.shallow_copy is None
    ferry_vendors("acme", "--vendor-path", str(acme), "--lang", "en")
    assert command.SECTIONS["limits"].en not in capsys.readouterr().out


def test_example_vendor(capsys: pytest.CaptureFixture[str]) -> None:
    vendor = load_vendor(ACME)
    assert (vendor.limits.device_memory, vendor.limits.device_count) == ("16GiB", 2)
    assert vendor.limits.dtypes["float64"].becomes == "float32"
    ferry_vendors("acme", "--vendor-path", str(ACME), "--lang", "en")
    output = capsys.readouterr().out
    for shown in ("falls_back", "ACME_NO_CPU=1", "Acme 100", "computed_as float32"):
        assert shown in output
    assert meanings(Limits)["data_parallel_message"].label.en not in output  # not known, so not shown


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    ferry_vendors("cambricon", "--format", "json")
    limits = json.loads(capsys.readouterr().out)["limits"]
    assert limits["missing_operator"] == "falls_back"
    assert limits["dtypes"]["complex128"]["narrowing"] == "computed_as"


def test_every_limit_is_shown() -> None:
    """Those with keys of their own have sections of their own."""
    without = {name for name, meaning in meanings(Limits).items() if meaning.label is None}
    assert without == {"dtypes", "sparse", "saturation"}
