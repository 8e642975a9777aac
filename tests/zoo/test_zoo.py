"""`ferry zoo` as users run it: a delivery that is made, filled in and found complete, and what is said of others."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.zoo.projects import PLACE, TRAIN, deliver, fill_in, logs, project
from torchferry.cli.main import main

TEST_SCRIPT = "run_scripts/test.sh"


def check(
    capfd: pytest.CaptureFixture[str], delivery: Path, *options: str
) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit code, and of each subject its worst status and what was found."""
    capfd.readouterr()
    code = main(["zoo", "check", str(delivery), "--format", "json", *options])
    content = json.loads(capfd.readouterr()[0])
    found: dict[str, tuple[str, str]] = {}
    for item in content["items"]:
        found.setdefault(item["subject"], (item["status"], item["found"]["en"]))
    assert content["complete"] is (code == 0)
    return code, found


def statuses(found: dict[str, tuple[str, str]], status: str) -> list[str]:
    return sorted(subject for subject, (each, _) in found.items() if each == status)


def test_a_delivery_is_made_filled_in_and_complete(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    delivery = deliver(tmp_path)
    out = capfd.readouterr()[0]
    assert out.splitlines()[-2] == f"next: ferry zoo check {delivery}"
    assert "your fork of https://gitee.com/tecorigin/modelzoo" in out and "pull request" in out
    code, found = check(capfd, delivery)
    assert (code, statuses(found, "missing")) == (1, ["README.en.md", "README.md"])
    fill_in(delivery)
    code, found = check(capfd, delivery)
    assert (code, statuses(found, "missing"), statuses(found, "doubt"), statuses(found, "recommended")) == (
        0,
        [],
        [],
        [],
    )
    assert found["loss"][0] == "fine" and found["acc1"][0] == "fine"
    assert found["images/s"] == ("note", "900 and 450: -50.00%")
    assert found["LICENSE"] == ("fine", "MIT")


def test_what_is_made(tmp_path: Path) -> None:
    delivery = deliver(tmp_path)
    code = (delivery / "train.py").read_text()
    assert "import torch_sdaa" in code and 'torch.device("sdaa")' in code
    assert (delivery / "README.original.md").read_text() == "# A line\n"
    chinese, english = ((delivery / name).read_text("utf-8") for name in ("README.md", "README.en.md"))
    assert "### 2.2 准备数据集" in chinese and "### 2.2 Data set" in english
    assert "url=https://example.com/line" in chinese
    assert "| acc1 | 76.1 | 76 | -0.13% |" in chinese
    assert "python run_Line.py --steps 3" in english
    script = (delivery / TEST_SCRIPT).read_text()
    assert "run_Line.py --nproc_per_node" in script and "--steps 3" in script
    launcher = (delivery / "run_scripts/run_Line.py").read_text()
    assert "SCRIPT = 'train.py'" in launcher and "OPTIONS = {'step': '--steps'}" in launcher
    assert "| `--step` | number of steps | `--steps` |" in (delivery / "run_scripts/README.md").read_text(
        "utf-8"
    )
    assert subprocess.run(["bash", "-n", str(delivery / TEST_SCRIPT)]).returncode == 0
    assert (delivery / "run_scripts/sdaa.log").read_text() == (tmp_path / "port.log").read_text()
    assert "<polyline" in (delivery / "run_scripts/loss.svg").read_text()
    assert "MeanRelativeError: 0.00690653" in chinese and "![loss](run_scripts/loss.svg)" in chinese
    assert not list(tmp_path.glob("PyTorch/contrib/Classification/.*"))


def test_the_readme_s_command_lines_need_nothing_that_is_not_set(tmp_path: Path) -> None:
    delivery = deliver(tmp_path)
    for name in ("README.md", "README.en.md"):
        text = (delivery / name).read_text("utf-8")
        assert "--nproc_per_node 4" in text and "$NPROC" not in text
    started = (delivery / "scripts/train_sdaa_3rd.sh").read_text()
    assert (
        'cd "$(dirname "$0")/.."' in started
        and "run_scripts/run_Line.py" in started
        and "${NPROC:-4}" in started
    )


def test_channels_last(tmp_path: Path) -> None:
    model = TRAIN.replace("torch.nn.Linear(4, 1)", "torch.nn.Conv2d(4, 1, 1)").replace(
        "randn(8, 4,", "randn(8, 4, 2, 2,"
    )
    root = project(tmp_path, **{"train.py": model})
    for place, options in (("A", []), ("B", ["--channels-last"])):
        path = tmp_path / "PyTorch/contrib/Classification" / place
        assert main(["zoo", "new", str(path), "--from", str(root), *options]) == 0
        assert ("channels_last" in (path / "train.py").read_text()) == bool(options)


def merged(root: Path, files: dict[str, str]) -> Path:
    """A model as the zoo holds it."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_models_as_the_zoo_holds_them_are_complete(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Most have scripts/train_sdaa_3rd.sh and a picture, no logs, no run_scripts and often no licence."""
    code = TRAIN.replace("torch.cuda.amp", "torch_sdaa.amp").replace('"cuda"', '"sdaa"')
    readme = "# X\n## 来源\nurl=https://x\n## 数据集\nx\n## 环境\nx\n## 训练\npython train.py\n## 训练结果\n| loss | 2.4 |\n"
    files = {
        "train.py": "import torch_sdaa\n" + code,
        "README.md": readme,
        "requirements.txt": "tqdm==4.1\n",
        "scripts/train_sdaa_3rd.sh": "cd ..\npython train.py\n",
        "scripts/plot_curve.py": "print()\n",
    }
    found = check(capfd, merged(tmp_path / PLACE, files))
    assert found[0] == 0 and statuses(found[1], "missing") == []
    assert statuses(found[1], "recommended") == []
    assert statuses(found[1], "doubt") == ["LICENSE", "cuda", "sdaa"]


def test_a_folder_of_another_framework_is_not_judged_by_pytorch_s_rules(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    files = {
        "train.py": "import paddle\npaddle.set_device('sdaa')\n",
        "README.md": "# X\n## 数据集\nx\n",
        "LICENSE": "MIT License\n",
    }
    delivery = merged(tmp_path / "PaddlePaddle/contrib/Classification/X", files)
    capfd.readouterr()
    assert main(["zoo", "check", str(delivery), "--lang", "en"]) == 0
    out = " ".join(capfd.readouterr()[0].split())
    assert "programs for PaddlePaddle are not supported yet" in out
    assert "torch_sdaa" not in out and "DistributedDataParallel" not in out


def test_nothing_is_overwritten(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    delivery = deliver(tmp_path)
    (delivery / "README.md").write_text("mine")
    original = tmp_path / "original"
    assert main(["zoo", "new", str(delivery), "--from", str(original)]) == 2
    assert "not empty" in capfd.readouterr()[1]
    assert (delivery / "README.md").read_text() == "mine"


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("PyTorch/Classification/Line", "requires the path {framework}/contrib/{domain}/{model}"),
        ("Torch/contrib/Classification/Line", "'Torch' is not a framework of Tecorigin ModelZoo"),
        ("PyTorch/contrib/Classification/my model", "is not a valid model name"),
        ("PaddlePaddle/contrib/Classification/Line", "only PyTorch"),
        ("PyTorch/contrib/Clasification/Line", "did you mean Classification?"),
        ("pytorch/contrib/Classification/Line", "did you mean PyTorch?"),
        (
            "PyTorch/contrib/Classification/Line/more",
            "requires the path {framework}/contrib/{domain}/{model}",
        ),
    ],
)
def test_places_that_do_not_fit(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], place: str, told: str
) -> None:
    root = project(tmp_path)
    assert main(["zoo", "new", str(tmp_path / place), "--from", str(root)]) == 2
    assert told in capfd.readouterr()[1]
    assert not (tmp_path / place).exists()


def test_another_domain_is_noted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    delivery = deliver(tmp_path, place="PyTorch/contrib/Regression/Line")
    found = check(capfd, delivery)[1]
    assert found["domain Regression"][0] == "note"


def test_bad_usage(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = project(tmp_path)

    def told(*arguments: str) -> str:
        assert main(["zoo", *arguments]) == 2
        return capfd.readouterr()[1]

    place = str(tmp_path / PLACE)
    assert "which project?" in told("new", place)
    assert "unknown option --run" in told("new", place, "--from", str(root), "--run")
    assert "unknown option --from" in told("check", place, "--from", str(root))
    assert "no such folder" in told("check", place)
    assert "has no such file" in told("new", place, "--from", str(root), "--main", "tarin.py")
    assert "No closing quotation" in told("new", place, "--from", str(root), "--arguments", "'x")
    assert "no model zoo of 'ascend'" in told("new", place, "--from", str(root), "--to", "ascend")
    empty = tmp_path / "empty.log"
    empty.write_text("nothing here\n")
    assert "no loss, accuracy or throughput" in told(
        "new", place, "--from", str(root), "--results", str(empty)
    )
    assert not (tmp_path / "PyTorch").exists()


def test_what_is_asked_of_the_code(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    delivery = deliver(tmp_path)
    found = check(capfd, delivery)[1]
    assert found["distributed"] == ("fine", "torch.nn.parallel.DistributedDataParallel")
    assert found["amp"][0] == "fine"
    code = (delivery / "train.py").read_text()
    # names that only look like it: a function of the user's own, a comment, a text
    plain = code.replace("as DDP", "as _").replace("DDP(model)", "model  # DDP(model)")
    plain = plain.replace("with autocast():", "if 'autocast':")
    (delivery / "train.py").write_text("def autocast():\n    return 'DistributedDataParallel'\n" + plain)
    found = check(capfd, delivery)[1]
    assert {"distributed", "amp"} <= set(statuses(found, "missing"))
    (delivery / "train.py").write_text("from accelerate import Accelerator\nAccelerator()\n")
    found = check(capfd, delivery)[1]
    assert (found["distributed"][0], found["amp"][0]) == ("note", "note")
    assert found["torch_sdaa"][0] == "missing"


def test_leftovers_of_cuda(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    delivery = deliver(tmp_path)
    (delivery / "more.py").write_text("import torch\nx = torch.zeros(1).cuda()\n")
    status, text = check(capfd, delivery)[1]["CUDA"]
    assert status == "missing" and text.startswith("still written for CUDA: 1 places, first: ")


def test_files_that_do_not_belong_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    delivery = deliver(tmp_path)
    (delivery / "best.pth").write_bytes(b"x")
    (delivery / "__pycache__").mkdir()
    (delivery / "__pycache__/train.pyc").write_bytes(b"x")
    with open(delivery / "video.mp4", "wb") as file:
        file.truncate(11 << 20)
    main(["zoo", "check", str(delivery), "--lang", "en"])
    out = capfd.readouterr()[0]
    assert "larger than 10 MiB: video.mp4" in out
    assert "weights: best.pth" in out
    assert "created by runs: __pycache__/train.pyc" in out


def test_requirements(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    delivery = deliver(tmp_path)
    text = "numpy==1.26.4\ntqdm>=4 # bars\nnvidia-dali-cuda110==1.0\ntorch==2.4.0\n-r more.txt\n"
    (delivery / "requirements.txt").write_text(text)
    main(["zoo", "check", str(delivery), "--lang", "en"])
    out = " ".join(capfd.readouterr()[0].split())  # lines are as wide as the terminal
    assert "without a version: tqdm" in out
    assert "provided by the vendor, or only for CUDA: nvidia-dali-cuda110" in out


def test_accuracy_below_the_original(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    delivery = deliver(tmp_path)
    scripts = delivery / "run_scripts"
    (scripts / "sdaa.log").unlink()
    assert check(capfd, delivery)[1]["sdaa"][0] == "doubt"
    (scripts / "sdaa.json").write_text('{"loss": [2.5, 2.4], "acc1": 70.0}')
    found = check(capfd, delivery)[1]
    assert (found["loss"][0], found["acc1"][0]) == ("missing", "missing")
    assert check(capfd, delivery, "--tolerance", "0.5")[1]["loss"][0] == "fine"
    (scripts / "sdaa.json").unlink()
    (scripts / "sdaa.csv").write_text("step,loss\n0,1.9\n1,nan\n")
    assert check(capfd, delivery)[1]["loss"][0] == "missing"
    (scripts / "sdaa.csv").write_text("step,time\n")
    assert check(capfd, delivery)[1]["evidence"][0] == "missing"


def test_pages(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    delivery = deliver(tmp_path)
    capfd.readouterr()
    assert main(["zoo", "check", str(delivery), "--format", "md", "--lang", "zh"]) == 1
    out = capfd.readouterr()[0]
    assert out.startswith("# Tecorigin ModelZoo 交付检查\n\n- 交付不完整，缺少：README.md, README.en.md")
    assert "| `LICENSE` | 正常 | MIT |" in out
    assert "已迁移至 太初元碁（`sdaa`）" in (delivery / "README.md").read_text("utf-8")
    assert "Migrated to Tecorigin" in (delivery / "README.en.md").read_text("utf-8")


def test_missing_evidence_names_the_options(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    delivery = deliver(tmp_path)
    for name, option in (("cuda.log", "--original-results FILE"), ("sdaa.log", "--results FILE")):
        (delivery / "run_scripts" / name).unlink()
        capfd.readouterr()
        assert main(["zoo", "check", str(delivery), "--format", "md", "--lang", "en"]) == 1
        out = capfd.readouterr()[0]
        assert f"with {option}" in out
    assert re.search(
        r"^- required and missing: \d+, doubts: \d+, recommended: \d+, notes: \d+, fine: \d+$",
        out,
        re.MULTILINE,
    )


def test_columns_that_are_swapped(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    delivery = deliver(tmp_path)
    for name, row in (("README.md", "| 76 | 76.1 |"), ("README.en.md", "| 76.1 | 76 |")):
        text = (delivery / name).read_text("utf-8")
        (delivery / name).write_text(text.replace("| 76.1 | 76 |", row), "utf-8")
    capfd.readouterr()
    assert main(["zoo", "check", str(delivery), "--format", "md", "--lang", "en"]) == 1
    lines = [line for line in capfd.readouterr()[0].splitlines() if "columns are swapped" in line]
    assert (
        len(lines) == 1
        and "`README.md: results` | missing | says acc1 migrated 76.1, but the logs say 76 " in lines[0]
    )


def test_the_licence_of_the_repository_above(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    part = project(tmp_path / "repository" / "examples")
    (part / "LICENSE").rename(tmp_path / "LICENSE")
    first, second = tmp_path / PLACE, tmp_path / f"{PLACE}2"
    assert main(["zoo", "new", str(first), "--from", str(part)]) == 0
    assert check(capfd, first)[1]["LICENSE"][0] == "doubt"  # what lies above is nobody's, or somebody else's
    (tmp_path / "repository/.git").mkdir()
    (tmp_path / "LICENSE").rename(tmp_path / "repository/LICENSE")
    assert main(["zoo", "new", str(second), "--from", str(part)]) == 0
    assert check(capfd, second)[1]["LICENSE"] == ("fine", "MIT")
    assert "MIT, see [LICENSE](LICENSE)." in (second / "README.en.md").read_text("utf-8")


def test_which_script_trains(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def said(name: str, files: dict[str, str]) -> str:
        root = project(tmp_path / name, **files)
        capfd.readouterr()
        assert main(["zoo", "new", str(tmp_path / name / PLACE), "--from", str(root)]) == 0
        return capfd.readouterr()[0]

    assert "trains: train.py (is called train, runs as a script, goes backward" in said("a", {})
    two = said("b", {"finetune_train.py": TRAIN, "main.py": TRAIN, "train.py": "x = 1\n"})
    assert "which script trains is not clear: finetune_train.py (is called" in two and ", main.py (" in two
    assert TEST_SCRIPT in statuses(check(capfd, tmp_path / "b" / PLACE)[1], "missing")
    nested = said("c", {"train.py": "x = 1\n", "tools/train.py": TRAIN, "tests/train.py": TRAIN})
    assert "trains: tools/train.py (" in nested
    books = said("d", {"train.py": "x = 1\n", "fit.ipynb": '{"cells": []}'})
    assert "none found, only notebooks" in books


# What a proof says of its format; earlier versions wrote a number.
@pytest.mark.parametrize("head", [{"format": "torchferry-proof", "version": 1}, {"format": 1}])
def test_a_proof_is_evidence_of_both(head: dict[str, object], tmp_path: Path) -> None:
    def run(*losses: float) -> dict[str, object]:
        return {"processes": [{"steps": [{"losses": [loss]} for loss in losses]}]}

    proof = {**head, "holds": True, "reference": run(3.0, 2.0), "results": [{"run": run(3.0, 2.1)}]}
    file = tmp_path / "proof.json"
    file.write_text(json.dumps(proof))
    delivery = tmp_path / PLACE
    assert main(["zoo", "new", str(delivery), "--from", str(project(tmp_path)), "--results", str(file)]) == 0
    curves = [
        json.loads((delivery / f"run_scripts/{side}.json").read_text())["curves"]["loss"]
        for side in ("cuda", "sdaa")
    ]
    assert curves == [[3.0, 2.0], [3.0, 2.1]]
    assert "迁移后的数据来自模拟设备" in (delivery / "README.md").read_text("utf-8")


def test_torch_is_not_needed(tmp_path: Path) -> None:
    root, (original, port) = project(tmp_path), logs(tmp_path)
    given = ["--from", str(root), "--results", str(port), "--original-results", str(original)]
    code = "import sys; sys.modules['torch'] = None\nfrom torchferry.cli.main import main\n"
    code += f"path = {str(tmp_path / PLACE)!r}\n"
    code += f"sys.exit(main(['zoo', 'new', path, *{given!r}]) * 10 + main(['zoo', 'check', path]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.long
def test_the_short_training_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    delivery = deliver(tmp_path)
    before = sorted(delivery.rglob("*"))
    assert check(capfd, delivery, "--run")[1][TEST_SCRIPT] == (
        "fine",
        "ran to completion on a simulated device",
    )
    assert sorted(delivery.rglob("*")) == before
    (delivery / TEST_SCRIPT).write_text("echo it is broken; exit 3\n")
    status, text = check(capfd, delivery, "--run")[1][TEST_SCRIPT]
    assert (status, text.endswith("exit code 3 on a simulated device: it is broken")) == ("missing", True)
