"""Wrong kernels in the simulated device are blamed, each on its own call; right ones that differ are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.forking import run_module_forked

from .arguments import ARGUMENTS
from .controls import QUICK
from .faults import FAULTS

FP32, BF16 = 0.95, 0.80  # share of the faults that must be blamed on the right call
Rows = list[dict[str, Any]]


def run(folder: Path, *options: str) -> Rows:
    """What came of the faults and controls, in a process of their own: it simulates a device."""
    file = folder / "rows.json"
    done = run_module_forked("tests.accuracy.faults", "--json", str(file), *options)
    assert done.returncode == 0, done.stderr
    rows: Rows = json.loads(file.read_text("utf-8"))
    return rows


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return run(tmp_path_factory.mktemp("faults"), "--quick")


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.quick], ids=lambda fault: fault.name)
def test_a_wrong_kernel_is_blamed(rows: Rows, fault: Any) -> None:
    """From golden's inputs, and in a run of its own where later calls inherit the error."""
    found = [row for row in rows if (row["name"], row["training"]) == (fault.name, fault.training)]
    assert len(found) == 2
    for row in found:
        assert row["is_right"], row
        assert row["verdict"] in ("fault", "suspicious")


@pytest.mark.parametrize("control", QUICK)
def test_right_kernels_raise_no_alarm(rows: Rows, control: str) -> None:
    found = [row for row in rows if row["name"] == control]
    assert found and [row for row in found if row["alarms"]] == []


@pytest.mark.parametrize("argument", [each for each in ARGUMENTS if each.quick], ids=lambda each: each.name)
def test_another_argument_is_named_first_with_its_line(rows: Rows, argument: Any) -> None:
    """And the same program with golden's arguments raises no alarm."""
    found = {row["is_argument"]: row for row in rows if row["name"] == argument.name}
    assert found[True]["is_right"], found[True]
    assert found[True]["said"].startswith("the programs differ here: ")
    assert not found[False]["alarms"], found[False]


def test_products_of_fewer_digits_are_named_as_such(rows: Rows) -> None:
    """And only where there are more digits: bfloat16 has fewer than TF32."""
    reduced = {row["training"]: row["reduced"] for row in rows if row["name"] == "products in TF32"}
    assert all(reduced[training] > 5 for training in ("Images", "Words", "Sequences"))
    assert reduced["Words bf16"] == 0


def test_what_is_wrong_is_said(rows: Rows) -> None:
    """In a word, and in a sentence."""
    sorts = {(row["name"], row["training"]): row["sort"] for row in rows if row["way"] == "replayed"}
    assert sorts["tail of a convolution is zero", "Images"] == "tail"
    assert sorts["nan in a logarithm", "Images"] == "nan"
    assert sorts["convolution is a column off", "Images"] == "shifted"
    assert sorts["product is transposed", "Sequences"] == "transposed"
    assert sorts["second moment is not updated", "Words"] == "unwritten"
    assert sorts["bias added twice", "Sequences bf16"] == "accumulate"
    assert sorts["rounds a residual towards zero", "Words bf16"] == "precision"
    assert sorts["deviation from n", "Sequences"] == "scale"


@pytest.mark.long
def test_the_whole_suite(tmp_path: Path) -> None:
    rows = run(tmp_path)
    arguments = [row for row in rows if row["is_argument"]]
    assert len(arguments) >= 14 and [row for row in arguments if not row["is_right"]] == []
    faults = [row for row in rows if not row["is_control"] and not row["is_argument"]]
    assert len(faults) >= 2 * 90
    silent = [row for row in faults if row["verdict"] in ("normal", "equal")]
    assert [row for row in silent if not row["training"].endswith("bf16")] == []
    for way in ("replayed", "independent"):
        for is_bf16, share in ((False, FP32), (True, BF16)):
            these = [
                row["is_right"]
                for row in faults
                if row["way"] == way and row["training"].endswith("bf16") is is_bf16
            ]
            assert sum(these) >= share * len(these), [row for row in faults if not row["is_right"]]
    assert [row for row in rows if row["is_control"] and row["alarms"]] == []
