"""Projects and places that are not as one would wish: what is left out, refused, or carried over as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.zoo.projects import PLACE, project
from torchferry.cli.main import main


def new(place: Path, root: Path, *options: str) -> int:
    return main(["zoo", "new", str(place), "--from", str(root), *options])


def test_what_is_left_out(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = project(tmp_path, **{"requirements.txt": "torch==2.1\r\ntqdm==4.66.1\r\nflash-attn\r\n"})
    (root / "best.pth").write_bytes(b"x")
    (root / "wandb").mkdir()
    (root / "wandb/run.log").write_text("x")
    with open(root / "clip.mp4", "wb") as file:
        file.truncate(11 << 20)
    (root / "data").symlink_to("/datasets")
    (root / "same.py").symlink_to("train.py")
    os.mkfifo(root / "pipe")
    (root / "odd\nname.txt").write_text("x")
    assert new(tmp_path / PLACE, root) == 3  # the pipe can't be carried over
    out = capfd.readouterr()[0]
    assert (
        "best.pth (weights), clip.mp4 (larger than 10 MiB), data (a link that leads out of the project)"
        in out
    )
    assert "wandb/run.log (made by running)" in out
    assert "taken out of requirements.txt: torch, flash-attn" in out
    made = tmp_path / PLACE
    assert (made / "requirements.txt").read_bytes() == b"tqdm==4.66.1\r\n"
    assert os.readlink(made / "same.py") == "train.py"
    assert (made / "odd\nname.txt").exists()
    assert not any((made / name).exists() for name in ("best.pth", "clip.mp4", "wandb/run.log"))
    assert not os.path.lexists(made / "data")


def test_places_that_are_taken(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = project(tmp_path)
    (tmp_path / PLACE).mkdir(parents=True)
    (tmp_path / PLACE / "mine.txt").write_text("mine")
    assert new(tmp_path / PLACE, root) == 2
    said = capfd.readouterr()[1]
    assert "nothing is overwritten" in said and "--force" not in said
    itself = tmp_path / "PyTorch/contrib/Speech/Line"
    itself.parent.mkdir()
    root.rename(itself)
    assert new(itself, itself) == 2
    assert "not empty" in capfd.readouterr()[1]
    assert sorted(path.name for path in itself.iterdir()) == ["LICENSE", "README.md", "train.py"]


def test_a_place_inside_the_original(tmp_path: Path) -> None:
    root = project(tmp_path)
    assert new(root / PLACE, root) == 0
    assert not (root / PLACE / "PyTorch").exists()


def test_sources_in_another_encoding(tmp_path: Path) -> None:
    root = project(tmp_path)
    latin = "# -*- coding: latin-1 -*-\nimport torch\nx = torch.zeros(1).cuda()  # \xe9\n".encode("latin-1")
    (root / "old.py").write_bytes(latin)
    (root / "README.md").write_bytes(b"\xff\xfe broken")
    assert new(tmp_path / PLACE, root) == 0
    assert b"\xe9" in (tmp_path / PLACE / "old.py").read_bytes()
    assert b".sdaa()" in (tmp_path / PLACE / "old.py").read_bytes()
    assert (tmp_path / PLACE / "README.original.md").read_bytes() == b"\xff\xfe broken"


def test_scripts_of_the_project_stay(tmp_path: Path) -> None:
    root = project(tmp_path, **{"run_scripts/test.sh": "#!/bin/sh\necho own\n"})
    assert new(tmp_path / PLACE, root) == 0
    assert (tmp_path / PLACE / "run_scripts/test.sh").read_text() == "#!/bin/sh\necho own\n"


def test_the_launcher_passes_options_on(tmp_path: Path) -> None:
    root = project(tmp_path)
    assert new(tmp_path / PLACE, root) == 0
    # the launcher is looked at, not the training
    (tmp_path / PLACE / "train.py").write_text("import sys\nprint(sys.argv[1:])\n")
    launcher = str(tmp_path / PLACE / "run_scripts/run_Line.py")

    def started(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-S", launcher, *options], capture_output=True, text=True)

    done = started("--step", "3", "--device", "sdaa", "--lr", "0.1")
    assert done.stdout == "['--steps', '3', '--lr', '0.1']\n"
    refused = started("--epoch", "3")
    assert refused.returncode == 2 and "train.py has no option for --epoch" in refused.stderr
