"""Which files are looked at, and that a project's files come out converted."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.conversion.rewriting import target
from torchferry.conversion.project import Plan, ProjectOutcome, examine_project
from torchferry.conversion.texts.configs import convert_ini, convert_json, convert_toml, convert_yaml
from torchferry.conversion.texts.dockerfile import convert_dockerfile, convert_makefile
from torchferry.conversion.texts.kinds import converter_of, might_be_text
from torchferry.conversion.texts.notebook import convert_notebook
from torchferry.conversion.texts.requirements import convert_requirements
from torchferry.conversion.texts.shell import convert_shell
from torchferry.outcome import FileStatus


@pytest.mark.parametrize(
    ("path", "converter"),
    [
        ("a.sh", convert_shell),
        ("a.bash", convert_shell),
        ("jobs/a.slurm", convert_shell),
        (".env", convert_shell),
        ("a.yaml", convert_yaml),
        ("a.yml", convert_yaml),
        ("environment.yml", convert_yaml),
        ("a.json", convert_json),
        ("pyproject.toml", convert_toml),
        ("setup.cfg", convert_ini),
        ("a.ini", convert_ini),
        ("Dockerfile", convert_dockerfile),
        ("docker/Dockerfile.train", convert_dockerfile),
        ("Makefile", convert_makefile),
        ("rules.mk", convert_makefile),
        ("requirements.txt", convert_requirements),
        ("requirements-dev.txt", convert_requirements),
        ("requirements/gpu.txt", convert_requirements),
        ("a.ipynb", convert_notebook),
    ],
)
def test_files_by_their_names(path: str, converter: object) -> None:
    assert might_be_text(path)
    assert converter_of(path, b"cuda") is converter


@pytest.mark.parametrize("path", ["README.md", "a.txt", "a.rs", "photo.png", "requirements.md"])
def test_other_files_are_of_no_interest(path: str) -> None:
    assert not might_be_text(path)


def test_scripts_without_a_suffix_by_their_first_line() -> None:
    assert converter_of("launch", b"#!/usr/bin/env bash\nCUDA_VISIBLE_DEVICES=0 x\n") is convert_shell
    assert converter_of("launch", b"CUDA_VISIBLE_DEVICES=0 x\n") is None
    assert converter_of("LICENSE", b"about cuda") is None


def test_what_says_nothing_of_cuda_or_is_no_text_is_not_read() -> None:
    assert converter_of("a.yaml", b"device: cpu\n") is None
    assert converter_of("a.json", b"\0\1cuda") is None


def test_gpus_in_the_prose_of_yaml_are_not_read() -> None:
    assert converter_of("metafile.yml", b"Training Resources: 8x V100 GPUs\n") is None
    for text in (
        b"gpus: 2\n",
        b"GPUS: 2\n",
        b'{"GPU_IDS": [0]}\n',
        b"type: MULTI_GPU\n",
        b"run: x --gpus all\n",
    ):
        assert converter_of("a.yml", text) is convert_yaml


def examined(folder: Path, **files: bytes) -> ProjectOutcome:
    for name, data in files.items():
        (folder / name.replace("__", ".")).write_bytes(data)
    return examine_project(folder, Plan(target("ascend")))


def test_a_project_with_all_sorts_of_files(tmp_path: Path) -> None:
    outcome = examined(
        tmp_path,
        run__sh=b"CUDA_VISIBLE_DEVICES=0 python a.py\r\n",
        a__yaml=b"\xef\xbb\xbfdevice: cuda\n",
        b__json=b'{"device": "cuda"}',
        c__yaml="device: cuda # 设备\n".encode("gb18030"),
        d__yaml=b"device: cpu\n",
    )
    changed = {item.path: item.new_data for item in outcome.outcomes if item.new_data is not None}
    assert changed == {
        "run.sh": b"ASCEND_RT_VISIBLE_DEVICES=0 python a.py\r\n",
        "a.yaml": b"\xef\xbb\xbfdevice: npu\n",
        "b.json": b'{"device": "npu"}',
        "c.yaml": "device: npu # 设备\n".encode("gb18030"),
    }
    hunks = {item.path: item.record.hunks for item in outcome.outcomes}
    assert hunks["b.json"][0].lines == (("~", '{"device": "cuda"}', '{"device": "npu"}'),)


def test_text_in_utf_16_is_reported_and_left(tmp_path: Path) -> None:
    outcome = examined(tmp_path, a__yaml="device: cuda\n".encode("utf-16"), b__yaml="a: 1\n".encode("utf-16"))
    (only,) = outcome.outcomes
    assert only.path == "a.yaml"
    assert only.new_data is None
    assert only.record.status is FileStatus.FAILED
    assert [finding.rule for finding in only.findings] == ["TF902"]


@pytest.mark.skipif(os.name == "nt", reason="no execute permission")
def test_a_converted_script_can_still_be_executed(tmp_path: Path) -> None:
    from torchferry.cli.main import main

    script = tmp_path / "in" / "run.sh"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nexport CUDA_VISIBLE_DEVICES=0\n")
    script.chmod(0o755)
    assert main(["convert", str(script.parent), "--to", "ascend", "-o", str(tmp_path / "out"), "-q"]) == 0
    new = tmp_path / "out" / "run.sh"
    assert "ASCEND_RT_VISIBLE_DEVICES" in new.read_text()
    assert stat.S_IMODE(new.stat().st_mode) == 0o755
