"""Whole projects on disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conversion.rewriting import VENDORS, target, vendor
from torchferry.conversion.project import Plan, ProjectOutcome, examine_project
from torchferry.finding import Kind
from torchferry.outcome import FileStatus

_CUDA = "import torch\nx = x.cuda()\n"
_NPU = b"import torch\nimport torch_npu\nx = x.npu()\n"


def project(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def examined(folder: Path, to: str = "ascend", **plan: object) -> ProjectOutcome:
    return examine_project(folder, Plan(target(to), **plan))  # type: ignore[arg-type]


def changed(outcome: ProjectOutcome) -> dict[str, bytes]:
    return {item.path: item.new_data for item in outcome.outcomes if item.new_data is not None}


def test_discovery(tmp_path: Path) -> None:
    files = [
        "a.py",
        "pkg/b.py",
        "pkg/deep/c.py",
        "__pycache__/d.py",
        ".git/e.py",
        "node_modules/f.py",
        "venv/g.py",
    ]
    project(tmp_path, dict.fromkeys(files, _CUDA))
    project(tmp_path, {"venv/pyvenv.cfg": "", "notes.txt": "cuda", "h.pyc": b"cuda", "none.py": "x = 1\n"})
    outcome = examined(tmp_path)
    assert sorted(changed(outcome)) == [
        "a.py",
        os.path.join("pkg", "b.py"),
        os.path.join("pkg", "deep", "c.py"),
    ]
    assert all(data == _NPU for data in changed(outcome).values())


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        ((), ["a.py", "tests/b.py", "tests/deep/c.py"]),
        (("tests",), ["a.py"]),
        (("tests/*",), ["a.py"]),
        (("b.py",), ["a.py", "tests/deep/c.py"]),
        (("*.py",), []),
        (("nothing",), ["a.py", "tests/b.py", "tests/deep/c.py"]),
    ],
)
def test_exclude(tmp_path: Path, exclude: tuple[str, ...], left: list[str]) -> None:
    project(tmp_path, dict.fromkeys(["a.py", "tests/b.py", "tests/deep/c.py"], _CUDA))
    assert sorted(changed(examined(tmp_path, exclude=exclude))) == left


def test_links_are_named_and_not_followed(tmp_path: Path) -> None:
    project(tmp_path, {"in/a.py": _CUDA, "out/b.py": _CUDA})
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "away").symlink_to(tmp_path / "out")
    (tmp_path / "in" / "file.py").symlink_to(tmp_path / "out" / "b.py")
    (tmp_path / "in" / "nowhere").symlink_to("missing")
    outcome = examined(tmp_path / "in")
    assert list(changed(outcome)) == ["a.py"]
    assert sorted(entry.path for entry in outcome.entries if entry.is_link) == [
        "away",
        "file.py",
        "loop",
        "nowhere",
    ]
    assert outcome.report("scan").files_seen == 1


@pytest.mark.parametrize("name", ["train.py", "tool.pyw", "train"])
def test_a_single_file(tmp_path: Path, name: str) -> None:
    source = f"#!/usr/bin/env python3\n{_CUDA}" if name == "train" else _CUDA
    project(tmp_path, {name: source, "other.py": _CUDA})
    outcome = examined(tmp_path / name)
    assert list(changed(outcome)) == [name]
    assert outcome.report("scan").project == name


def test_scripts_without_suffix_and_pyw_in_a_folder(tmp_path: Path) -> None:
    project(
        tmp_path,
        {
            "run": f"#!/usr/bin/env python3\n{_CUDA}",
            "window.pyw": _CUDA,
            "LICENSE": "cuda",
            "sh": "#!/bin/sh\ncuda\n",
        },
    )
    assert sorted(changed(examined(tmp_path))) == ["run", "window.pyw"]


def test_two_processes_give_what_one_gives(tmp_path: Path) -> None:
    filler = "# what fills the file\n" * 5000
    for number in range(32):
        project(
            tmp_path, {f"pkg{number % 7}/m{number}.py": f"{_CUDA}{filler}torch.cuda.set_device({number})\n"}
        )
    project(tmp_path, {"bad.py": "print 'cuda'\n", "own.py": "class A:\n    def cuda(self): return self\n"})
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.py")) > 3_000_000
    one, two = examined(tmp_path, jobs=1), examined(tmp_path, jobs=2)
    # Compared as truth values: the difference of files of this size would take minutes to print.
    same = changed(one) == changed(two)
    assert same
    assert one.report("scan") == two.report("scan")
    assert len(changed(one)) == 33


@pytest.mark.parametrize("to", [*VENDORS, "portable"])
def test_python_2_is_copied_and_looked_at_lexically(tmp_path: Path, to: str) -> None:
    project(
        tmp_path,
        {"old.py": "import torch\nprint 'hello'\nx = x.cuda()\ntorch.cuda.synchronize()\n", "new.py": _CUDA},
    )
    outcome = examined(tmp_path, to)
    assert list(changed(outcome)) == ["new.py"]
    assert outcome.failed
    (record,) = [item.record for item in outcome.outcomes if item.path == "old.py"]
    assert record.status is FileStatus.FAILED
    found = [item for item in outcome.report("scan").findings if item.path == "old.py"]
    assert {item.rule for item in found} == {"TF901"}
    assert [item.line for item in found] == [2, 3, 4]
    assert all(item.kind is Kind.TODO for item in found)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"# coding: klingon\nx.cuda() # \xe9\n", id="unknown cookie"),
        pytest.param(b"# coding: utf-8\nx.cuda() # \xe9\n", id="false cookie"),
        pytest.param(b"\xff\xfex\0.\0c\0u\0d\0a\0(\0)\0 cuda", id="UTF-16"),
    ],
)
def test_an_undecodable_file_is_reported(tmp_path: Path, data: bytes) -> None:
    project(tmp_path, {"odd.py": data, "good.py": _CUDA})
    outcome = examined(tmp_path)
    assert list(changed(outcome)) == ["good.py"]
    found = [item for item in outcome.report("scan").findings if item.path == "odd.py"]
    assert [(item.rule, item.kind) for item in found] == [("TF902", Kind.TODO)]


def test_a_file_that_can_not_be_read(tmp_path: Path) -> None:
    project(tmp_path, {"a.py": _CUDA, "b.py": _CUDA})
    (tmp_path / "b.py").chmod(0)
    if os.access(tmp_path / "b.py", os.R_OK):
        pytest.skip("this user may read everything")
    outcome = examined(tmp_path)
    assert list(changed(outcome)) == ["a.py"]
    assert [item.rule for item in outcome.report("scan").findings if item.path == "b.py"] == ["TF902"]


def test_a_file_that_is_no_file(tmp_path: Path) -> None:
    project(tmp_path, {"a.py": _CUDA})
    os.mkfifo(tmp_path / "pipe.py")
    outcome = examined(tmp_path)
    assert list(changed(outcome)) == ["a.py"]
    assert [
        (item.path, item.rule) for item in outcome.report("scan").findings if item.kind is not Kind.CHANGE
    ] == [("pipe.py", "TF902")]


def test_an_empty_project(tmp_path: Path) -> None:
    outcome = examined(tmp_path)
    assert (outcome.outcomes, outcome.failed, outcome.report("scan").files_seen) == ([], False, 0)


@pytest.mark.parametrize("name", VENDORS)
def test_own_cuda_methods_answer_to_both_names_across_files(tmp_path: Path, name: str) -> None:
    project(
        tmp_path,
        {
            "batch.py": "class Batch:\n    def cuda(self):\n        self.done = True\n        return self\n",
            "use.py": "from batch import Batch\nresult = Batch().cuda().done\n",
        },
    )
    new = changed(examined(tmp_path, name))
    values: dict[str, object] = {}
    exec(new["batch.py"], values)
    use = new.get("use.py", b"result = Batch().cuda().done\n").decode()
    plugin = vendor(name).plugin
    lines = [line for line in use.splitlines() if line not in (f"import {plugin}", "from batch import Batch")]
    exec("\n".join(lines), values)
    assert values["result"] is True


def test_a_function_called_cuda_in_another_file_is_left(tmp_path: Path) -> None:
    project(
        tmp_path,
        {
            "mover.py": "def cuda(x):\n    return x\n",
            "use.py": "import mover\nfrom mover import cuda\ny = cuda(mover.cuda(x))\n",
        },
    )
    assert changed(examined(tmp_path)) == {}


def test_select_and_ignore(tmp_path: Path) -> None:
    project(tmp_path, {"a.py": "import torch\nx.cuda()\ntorch.cuda.synchronize()\nd = 'cuda:0'\n"})
    only = changed(examined(tmp_path, select=("TF103",)))["a.py"]
    assert only == b"import torch\nimport torch_npu\nx.npu()\ntorch.cuda.synchronize()\nd = 'cuda:0'\n"
    without = changed(examined(tmp_path, ignore=("TF103", "TF101")))["a.py"]
    assert without == b"import torch\nx.cuda()\ntorch.npu.synchronize()\nd = 'npu:0'\n"


def test_a_second_name_for_an_own_cuda_comes_with_the_calls_that_need_it(tmp_path: Path) -> None:
    project(tmp_path, {"a.py": "class A:\n    def cuda(self):\n        return 1\n"})
    assert changed(examined(tmp_path, select=("TF201",))) == {}
    assert b"npu = cuda" in changed(examined(tmp_path, select=("TF1",)))["a.py"]


def test_cuda_sources_are_reported_and_scripts_converted(tmp_path: Path) -> None:
    project(
        tmp_path,
        {"k.cu": "__global__", "run.sh": "CUDA_VISIBLE_DEVICES=0 python a.py\n", "c.yaml": "device: cuda\n"},
    )
    outcome = examined(tmp_path)
    assert changed(outcome) == {
        "c.yaml": b"device: npu\n",
        "run.sh": b"ASCEND_RT_VISIBLE_DEVICES=0 python a.py\n",
    }
    assert [(item.path, item.rule) for item in outcome.report("scan").findings] == [
        ("c.yaml", "TF813"),
        ("k.cu", "TF801"),
        ("run.sh", "TF810"),
    ]


def test_findings_are_sorted_and_name_paths_with_slashes(tmp_path: Path) -> None:
    project(tmp_path, {"b/z.py": _CUDA, "b/a.py": _CUDA, "a.py": _CUDA})
    findings = examined(tmp_path).report("scan").findings
    assert [item.path for item in findings] == sorted(item.path for item in findings)
    assert {item.path for item in findings} == {"a.py", "b/a.py", "b/z.py"}


def test_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    try:
        project(tmp_path, {name: _CUDA})
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert list(changed(examined(tmp_path))) == [name]


def test_progress_is_told(tmp_path: Path) -> None:
    project(tmp_path, {f"{number}.py": _CUDA for number in range(5)})
    seen: list[tuple[int, int]] = []
    examine_project(tmp_path, Plan(target("ascend")), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(number, 5) for number in range(1, 6)]


_TOLD = {
    "settings.yaml": "device: cuda\n",
    "trainer.py": "import torch\ndef train(cfg, model):\n    model.to(cfg.device)\n",
    "main.py": "from trainer import train\nif __name__ == '__main__':\n    train(read('settings.yaml'), None)\n",
}


def _unloaded(folder: Path, to: str = "ascend", **more: str) -> list[str]:
    outcome = examined(
        project(folder, {**_TOLD, **{name.replace("_py", ".py"): text for name, text in more.items()}}), to
    )
    return [item.path for item in outcome.report("convert").findings if item.rule == "TF908"]


def test_a_program_that_is_told_its_device_and_loads_no_plugin(tmp_path: Path) -> None:
    assert _unloaded(tmp_path / "a") == ["settings.yaml"]
    assert _unloaded(tmp_path / "b", run_py=_CUDA) == []  # gets the import
    assert _unloaded(tmp_path / "c", run_py="import torch, torch_npu\n") == []
    assert _unloaded(tmp_path / "d", "intel") == []  # of PyTorch's own
    assert _unloaded(tmp_path / "e", "ascend+cuda") == []
    outcome = examined(project(tmp_path / "f", {"settings.yaml": "device: cuda\n"}))
    assert not outcome.remarks  # no program
