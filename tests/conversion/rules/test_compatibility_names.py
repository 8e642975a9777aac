"""TF114: names in letters that Python reads as others."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, rewritten, target
from torchferry.conversion.project import Plan, examine_project
from torchferry.outcome import FileStatus


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("print('ｃｕｄａ')", id="text"),
        pytest.param("# torch.ｃｕｄａ", id="a comment"),
        pytest.param("ｎａｍｅ = 1", id="a name of something else"),
        pytest.param("größe = 1", id="letters that stay as they are"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.ｃｕｄａ.is_available()", "torch.npu.is_available()"),
        ("ｘ.ｃｕｄａ(0)", "x.npu(0)"),
        ("s = 'é'; y = x.ｉｓ_ｃｕｄａ", "s = 'é'; y = x.is_npu"),
        ('s = f"{x.ｃｕｄａ()}"', 's = f"{x.npu()}"'),
    ],
)
def test_rewrites(before: str, after: str) -> None:
    assert expression(before) == after


@pytest.mark.parametrize("name", [*VENDORS, "portable"])
def test_nothing_of_cuda_is_left(name: str) -> None:
    assert "ｃ" not in rewritten("import torch\nx = torch.ｃｕｄａ.is_available()\n", name)


@pytest.mark.parametrize("encoding", ["utf-8", "gbk"])
def test_a_file_without_the_word_is_read(encoding: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    head = f"# -*- coding: {encoding} -*-\nimport torch\n"
    (tmp_path / "a.py").write_bytes(f"{head}x = torch.ｃｕｄａ.is_available()\n".encode(encoding))
    outcome = examine_project(tmp_path, Plan(target("ascend")))
    assert [item.record.status for item in outcome.outcomes] == [FileStatus.CHANGED]
    assert b"torch.npu.is_available()" in (outcome.outcomes[0].new_data or b"")
