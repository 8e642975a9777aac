"""A delivery that is complete, with one requirement broken at a time: exactly that one is named."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.zoo.projects import PLACE, deliver, fill_in
from torchferry.report.checks import Status
from torchferry.vendors.zoo import find_zoo
from torchferry.zoo.delivery import Delivery
from torchferry.zoo.review import review

Break = Callable[[Path], object]


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    delivery = deliver(tmp_path_factory.mktemp("zoo"))
    fill_in(delivery)
    return delivery


def named(root: Path) -> set[tuple[str, str]]:
    """Check and status of everything that is not fine."""
    vendor, table = find_zoo("tecorigin", ())
    items = review(Delivery(root, vendor, table)).results
    silent = (Status.NOTE, Status.FINE)
    return {(item.id, item.status.value) for item in items if item.status not in silent}


def replaced(file: str, *pairs: tuple[str, str]) -> Break:
    def change(root: Path) -> None:
        text = (root / file).read_text("utf-8")
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        (root / file).write_text(text, "utf-8")

    return change


def removed(file: str) -> Break:
    return lambda root: (root / file).unlink()


def written(file: str, text: str) -> Break:
    def write(root: Path) -> None:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text, newline="")

    return write


def no_scripts(root: Path) -> None:
    for name in ("run_scripts/test.sh", "run_scripts/run_Line.py", "scripts/train_sdaa_3rd.sh"):
        (root / name).unlink()


def worse(root: Path) -> None:
    """The port's losses a tenth higher, in the README too: only the rule is broken."""
    lines = "".join(f"step {step} loss {(2.0 - step / 100) * 1.1:.4f}\n" for step in range(100))
    (root / "run_scripts/sdaa.log").write_text(f"{lines}Acc@1 76.00\n")
    for name in ("README.md", "README.en.md"):
        text = (root / name).read_text("utf-8").splitlines()
        kept = [line for line in text if "loss" not in line and "images/s" not in line and "Mean" not in line]
        (root / name).write_text("\n".join(kept), "utf-8")


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (removed("README.md"), ("readme", "recommended")),
        (replaced("README.md", ("It fits a line.", "<TODO: what it is>")), ("readme", "missing")),
        (replaced("README.md", ("数据集", "x"), ("none", "")), ("readme", "recommended")),
        (replaced("README.md", ("python ", "x"), ("bash ", "x")), ("readme", "recommended")),
        (replaced("README.md", ("| 76.1 |", "| 78.9 |")), ("results", "missing")),
        (replaced("README.md", ("| 76.1 | 76 |", "| 76 | 76.1 |")), ("results", "missing")),
        (
            replaced("README.en.md", ("MeanRelativeError: 0.0069", "MeanRelativeError: 0.0011")),
            ("results", "missing"),
        ),
        (replaced("README.md", ("| acc1 |", "| mIoU |")), ("results", "doubt")),
        (removed("LICENSE"), ("licence", "doubt")),
        (written("LICENSE", "GNU GENERAL PUBLIC LICENSE"), ("licence", "doubt")),
        (removed("requirements.txt"), ("requirements", "recommended")),
        (written("requirements.txt", "tqdm\n"), ("requirements", "doubt")),
        (written("requirements.txt", "torch==2.4.0\n"), ("requirements", "doubt")),
        (no_scripts, ("script", "recommended")),
        (replaced("run_scripts/test.sh", ("\n", "\r\n")), ("script", "missing")),
        (lambda root: (root / "run_scripts/test.sh").chmod(0o644), ("script", "doubt")),
        (replaced("scripts/train_sdaa_3rd.sh", ("\n", "\r\n")), ("script", "missing")),
        (removed("run_scripts/cuda.log"), ("evidence", "doubt")),
        (worse, ("evidence", "missing")),
        (replaced("train.py", ("model = DDP(model)", "pass")), ("code", "missing")),
        (replaced("train.py", ("autocast()", "autocast(enabled=False)")), ("code", "missing")),
        (replaced("train.py", ("import torch_sdaa\n", "")), ("code", "missing")),
        (written("more.py", "import torch\nx = torch.zeros(1).cuda()\n"), ("leftovers", "missing")),
        (written("best.pth", "x"), ("files", "doubt")),
        (written("data.zip", "x"), ("files", "doubt")),
        (written("__pycache__/x.pyc", "x"), ("files", "doubt")),
        (lambda root: (root / "data").symlink_to("/somewhere/else"), ("files", "missing")),
    ],
)
def test_exactly_one_is_named(complete: Path, tmp_path: Path, broken: Break, check: tuple[str, str]) -> None:
    root = tmp_path / PLACE
    shutil.copytree(complete, root)
    assert named(root) == set()
    broken(root)
    assert named(root) == {check}


def test_a_folder_elsewhere(complete: Path, tmp_path: Path) -> None:
    for place in ("PyTorch/Line", "PyTorch/contrib/clasification/Line", "Torch/contrib/Speech/Line"):
        root = tmp_path / place
        shutil.copytree(complete, root)
        assert named(root) == {("layout", "missing")}


@pytest.mark.parametrize(
    "kept", ["run_scripts/test.sh", "run_scripts/run_Line.py", "scripts/train_sdaa_3rd.sh"]
)
def test_any_form_of_start_script_will_do(complete: Path, tmp_path: Path, kept: str) -> None:
    """As models of the zoo have it: most in scripts/, the others in run_scripts/."""
    root = tmp_path / PLACE
    shutil.copytree(complete, root)
    content = (root / kept).read_bytes()
    no_scripts(root)
    (root / kept).write_bytes(content)
    (root / kept).chmod(0o755)
    assert named(root) == set()
