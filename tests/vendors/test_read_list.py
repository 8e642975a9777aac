"""Lists that are taken over into a vendor's folder: what comes in, what stays, and that a second run changes nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tools import read_list

from torchferry.vendors.model import Support
from torchferry.vendors.ops import load_ops
from torchferry.vendors.registry import get_vendor, load_vendor, vendor_names

ACME = Path(__file__).parents[2] / "examples" / "vendors" / "acme"
YAML = """\
supported:
  - func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    op_api: all
  - mul.Tensor
custom:
  - func: acme_secret(Tensor self) -> Tensor
  - func: torchvision::nms(Tensor dets) -> Tensor
"""
OPS = "# complete: yes\n# versions: 2.1\n# note: ours\nadd.Tensor 2.1 | not above rank 8\ncumsum 2.1 =float32\nmm 2.1\n"
NAMES = """\
| API | there | limit |
|---|---|---|
| `torch.acme.synchronize` | yes | only on device 0 |
| torch.cuda.utilization | no |
| torch.cuda.max_memory_allocated | yes |
| torch.cuda.memory_stats | torch.acme.memory.stats |
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(ACME, tmp_path / "acme")
    return tmp_path / "acme"


def take_over(folder: Path, what: str, listed: str, *arguments: str) -> str:
    """The file after the list was read; twice, to the same end."""
    file = folder.parent / "list.txt"
    file.write_text(listed, "utf-8")
    target = folder / ("ops.txt" if what == "operators" else "apis.toml")
    for _ in range(2):
        assert read_list.main([what, str(file), "--folder", str(folder), *arguments]) == 0
    text = target.read_text("utf-8")
    assert read_list.main([what, str(file), "--folder", str(folder), *arguments]) == 0
    assert target.read_text("utf-8") == text
    return text


@pytest.mark.parametrize(
    "listed", [YAML, "add.Tensor\nmul.Tensor\ntorchvision::nms\n"], ids=["yaml", "lines"]
)
def test_operators_of_a_new_version(folder: Path, listed: str) -> None:
    (folder / "ops.txt").write_text(OPS)
    assert take_over(folder, "operators", listed, "--version", "2.4").splitlines() == [
        *("# complete: yes", "# versions: 2.1 2.4", "# note: ours"),
        *("add.Tensor 2.1 2.4 | not above rank 8", "cumsum 2.1 =float32", "mm 2.1"),
        *("mul.Tensor 2.4", "torchvision::nms 2.4"),
    ]


def test_operators_that_a_version_has_lost(folder: Path) -> None:
    (folder / "ops.txt").write_text(OPS)
    take_over(
        folder, "operators", YAML, "--version", "2.1", "--complete", "--source", "acme/plugin | 1a2b | a.yaml"
    )
    ops = load_ops(folder)
    assert sorted(ops.kernels) == ["add.Tensor", "mul.Tensor", "torchvision::nms"]
    assert ops.has_kernel("mm", "2.1") is False
    assert (ops.sources[0].name, ops.sources[0].path) == ("acme/plugin", "a.yaml")


def test_operators_of_a_running_plugin(folder: Path) -> None:
    listed = json.dumps({"operators": ["mm", "acme_helper"], "names": []})
    text = take_over(folder, "operators", listed, "--version", "2.4")
    assert text == "# complete: no\n# versions: 2.4\nmm 2.4\n"


@pytest.mark.parametrize(
    "name", [each for each in vendor_names() if load_ops(Path(get_vendor(each).folder)).complete]
)
def test_our_own_tables_are_what_their_lists_say(name: str, tmp_path: Path) -> None:
    """Read back, the operators of each version give the table that we have."""
    text = (Path(get_vendor(name).folder) / "ops.txt").read_text("utf-8")
    ops = load_ops(Path(get_vendor(name).folder))
    for version in ops.versions:
        listed = {operator for operator in ops.kernels if ops.has_kernel(operator, version)}
        special = {operator for operator in ops.special if version in _row(text, operator)}
        assert read_list.with_operators(text, listed | special, version, complete=True) == text


def _row(text: str, operator: str) -> list[str]:
    return next(line.split() for line in text.splitlines() if line.split()[0] == operator)


def test_names_that_a_list_says(folder: Path) -> None:
    text = take_over(folder, "names", NAMES, "--basis", "list of 1.2", "--source", "acme/docs | 1.2 | api.md")
    apis = load_vendor(folder).apis
    assert apis["torch.cuda.synchronize"].support is Support.SAME
    assert apis["torch.cuda.utilization"].support is Support.UNSUPPORTED
    assert apis["torch.cuda.utilization"].basis == "list of 1.2"
    assert apis["torch.cuda.memory_stats"].name == "torch.acme.memory.stats"
    assert apis["torch.cuda.max_memory_allocated"].name == "torch.acme.memory.peak", (
        "it has another name there"
    )
    assert load_vendor(folder).api_notes == {"torch.cuda.synchronize": "only on device 0"}
    assert "acme/docs" in {source.name for source in load_vendor(folder).sources}
    assert "# torch.acme.is_available" in text, "what people have written stays"


def test_names_of_a_running_plugin(folder: Path) -> None:
    listed = json.dumps({"operators": [], "names": ["is_available", "set_device", "get_device_capability"]})
    take_over(folder, "names", listed, "--basis", "module of 1.2", "--complete")
    apis = load_vendor(folder).apis
    assert apis["torch.cuda.get_device_capability"].support is Support.SAME
    assert apis["torch.cuda.device_count"].support is Support.UNSUPPORTED
    assert apis["torch.cuda.amp.GradScaler"].name == "torch.amp.GradScaler"


def test_a_changed_name_is_known_in_one_way_only() -> None:
    text = '[apis]\n"torch.cuda.a" = "unknown"\n\n# why\n[basis]\nguess = [\n  "torch.cuda.a",\n  "torch.cuda.b",\n]\n'
    answers = {"torch.cuda.a": read_list.Answer("same")}
    after = read_list.with_names(text, answers, {"torch.cuda.a": "unknown"}, "list", complete=False)
    assert after == (
        '[apis]\n"torch.cuda.a" = "same"\n\n# why\n[basis]\n"guess" = [\n  "torch.cuda.b",\n]\n"list" = [\n  "torch.cuda.a",\n]\n'
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["operators"], "operators need --version"), (["names", "--version", "x"], "no vendor.toml")],
)
def test_bad_usage(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    what, *rest = arguments
    try:
        code: object = read_list.main([what, str(tmp_path / "list"), "--folder", str(tmp_path), *rest])
    except SystemExit as ended:
        code = ended.code
    assert code == 2 and message in capsys.readouterr().err
