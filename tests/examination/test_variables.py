"""A vendor's variables: judged by the vendor's data, and unknown where the data say nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.vendors.conftest import MINIMAL
from torchferry.errors import VendorError
from torchferry.examination.examine import check_variables
from torchferry.report.checks import CheckResult, Status
from torchferry.vendors.host import load_host
from torchferry.vendors.registry import get_vendor, load_vendor, vendor_names


def results(name: str, **environment: str) -> dict[str, CheckResult]:
    vendor = get_vendor(name)
    tuning = load_host(Path(vendor.folder)).tuning
    return {result.subject: result for result in check_variables(vendor, tuning, environment)}


@pytest.mark.parametrize("name", vendor_names())
def test_every_entry_says_what_it_does_in_both_languages(name: str) -> None:
    table = load_host(Path(get_vendor(name).folder))
    assert table.tuning and table.sources
    for entry in table.tuning:
        assert entry.what.en != entry.what.zh, entry.name
        assert entry.source
        # a setting that is recommended must not be one that costs, or one to be improved
        bad = [pattern for pattern in (entry.slow, entry.improvable) if pattern and entry.recommended]
        assert not [pattern for pattern in bad if re.fullmatch(pattern, entry.recommended)], entry.name


@pytest.mark.parametrize("name", vendor_names())
def test_nothing_costs_where_nothing_is_set(name: str) -> None:
    assert not [result for result in results(name).values() if result.status is Status.COSTS]


@pytest.mark.parametrize(
    ("vendor", "name", "value", "status", "command"),
    [
        ("ascend", "TASK_QUEUE_ENABLE", "0", Status.COSTS, "export TASK_QUEUE_ENABLE=2"),
        ("ascend", "TASK_QUEUE_ENABLE", "1", Status.COULD, "export TASK_QUEUE_ENABLE=2"),
        ("ascend", "TASK_QUEUE_ENABLE", "2", Status.FINE, ""),
        ("ascend", "PTCOPY_ENABLE", "0", Status.COSTS, "export PTCOPY_ENABLE=1"),
        ("ascend", "COMBINED_ENABLE", "0", Status.COULD, "export COMBINED_ENABLE=1"),
        ("ascend", "ASCEND_GLOBAL_LOG_LEVEL", "1", Status.COSTS, "export ASCEND_GLOBAL_LOG_LEVEL=3"),
        ("ascend", "ASCEND_GLOBAL_LOG_LEVEL", "3", Status.FINE, ""),
        ("ascend", "ASCEND_SLOG_PRINT_TO_STDOUT", "1", Status.COSTS, "export ASCEND_SLOG_PRINT_TO_STDOUT=0"),
        ("ascend", "DUMP_GE_GRAPH", "2", Status.COSTS, "unset DUMP_GE_GRAPH"),
        ("ascend", "ASCEND_LAUNCH_BLOCKING", "1", Status.COSTS, "export ASCEND_LAUNCH_BLOCKING=0"),
        ("ascend", "PYTORCH_NPU_ALLOC_CONF", "max_split_size_mb:64", Status.COULD,
         "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True"),
        ("ascend", "PYTORCH_NPU_ALLOC_CONF", "a:1,expandable_segments:True", Status.FINE, ""),
        ("ascend", "HCCL_WHITELIST_DISABLE", "1", Status.INFO, ""),
        ("cambricon", "PYTORCH_NO_MLU_MEMORY_CACHING", "1", Status.COSTS, "unset PYTORCH_NO_MLU_MEMORY_CACHING"),
        ("tecorigin", "TORCH_SDAA_LOG_LEVEL", "DEBUG", Status.COSTS, "unset TORCH_SDAA_LOG_LEVEL"),
        ("moorethreads", "MUSA_LAUNCH_BLOCKING", "1", Status.COSTS, "export MUSA_LAUNCH_BLOCKING=0"),
        ("intel", "SYCL_CACHE_PERSISTENT", "1", Status.FINE, ""),
    ],
)  # fmt: skip
def test_values(vendor: str, name: str, value: str, status: Status, command: str) -> None:
    result = results(vendor, **{name: value})[name]
    assert result.status is status
    assert [each.line for each in result.commands] == ([command] if command else [])
    assert result.found.en == value


def test_what_is_not_known_is_said_so() -> None:
    found = results("ascend", HCCL_EXEC_TIMEOUT="60")
    assert found["PTCOPY_ENABLE"].found.en == "not set; its default is unknown"
    assert found["PTCOPY_ENABLE"].status is Status.INFO
    assert found["TASK_QUEUE_ENABLE"].found.en == "not set, so 1"
    assert "its effect on speed is unknown" in found["HCCL_EXEC_TIMEOUT"].why.en


def test_options_of_a_program_cant_be_seen() -> None:
    option = results("ascend", ACL_OP_SELECT_IMPL_MODE="high_precision")["ACL_OP_SELECT_IMPL_MODE"]
    assert (option.id, option.status, option.commands) == ("option", Status.UNSEEN, ())
    assert 'torch.npu.set_option({"ACL_OP_SELECT_IMPL_MODE": "high_performance"})' in option.why.en


def test_a_vendor_of_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "vendor.toml").write_text(MINIMAL)
    assert load_host(tmp_path).tuning == ()
    row = '[[tuning]]\nname = "ACME_QUEUE"\nwhat = "a queue"\nsource = "us"\nslow = "0"\nrecommended = "1"\n'
    (tmp_path / "host.toml").write_text(row)
    vendor = load_vendor(tmp_path)
    (result,) = check_variables(vendor, load_host(tmp_path).tuning, {"ACME_QUEUE": "0"})
    assert (result.status, result.why.zh) == (Status.COSTS, "a queue；建议：1")
    (tmp_path / "host.toml").write_text(row.replace('"0"', '"("'))
    with pytest.raises(VendorError, match=r"'tuning\[1\].slow' is not a valid regular expression"):
        load_host(tmp_path)
