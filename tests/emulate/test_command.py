"""What `ferry emulate` and `--emulate` refuse, in one line each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import environment, make, one_line, run
from tests.emulate.wheels import wheel


@pytest.fixture
def nothing_set_up(tmp_path: Path) -> dict[str, str]:
    return environment(TORCHFERRY_CACHE=str(tmp_path / "cache"), PIP_NO_INDEX="1")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("emulate", "info", "--wheel", "x.whl"), ("unknown option --wheel", "ferry emulate info --help")),
        (("emulate", "setup", "--to", "cambricon"), ("cambricon", "no emulation", "--sim")),
        (("emulate", "setup", "--to", "ascnd"), ("did you mean 'ascend'",)),
        (("emulate", "setup", "--wheel", "nowhere.whl"), ("no such wheel", "torch_npu-")),
        (("emulate", "setup", "-q"), ("can't be downloaded", "--wheel FILE")),
        (("run", "--to", "ascend", "--emulate", "train.py"), ("ferry emulate setup --to ascend",)),
        (("run", "--to", "cambricon", "--emulate", "train.py"), ("cambricon: no emulation",)),
        (("run", "--to", "ascend", "--native", "train.py"), ("--native", "--emulate")),
        (
            ("run", "--to", "ascend", "--emulate", "--native", "--converted", "train.py"),
            ("--native and --converted",),
        ),
        (("run", "--to", "ascend", "--emulate", "--strict", "train.py"), ("--strict", "--sim")),
        (("prove", "--to", "ascend", "--emulate", "train.py"), ("ferry emulate setup",)),
        (
            ("prove", "--to", "moorethreads", "--emulate", "train.py"),
            ("moorethreads: no emulation",),
        ),
        (("record", "--emulate", "-o", "r.h5", "train.py"), ("--emulate", "--to VENDOR")),
        (("record", "--to", "ascend", "--emulate", "-o", "r.h5", "train.py"), ("ferry emulate setup",)),
        (
            ("ops", "--to", "ascend", "--emulate", "--device", "cuda", "--", "train.py"),
            ("--emulate and --device",),
        ),
        (("ops", "--to", "ascend", "--emulate", "train.py"), ("ferry emulate setup",)),
        (("overflow", "--to", "cambricon", "--emulate", "train.py"), ("no emulation",)),
        (("watch", "--to", "ascend", "--emulate", "-o", "w.h5", "train.py"), ("ferry emulate setup",)),
        (("profile", "--to", "ascend", "--emulate", "train.py"), ("ferry emulate setup",)),
        (
            ("case", "add", "--to", "ascend", "--emulate", "--input", "2", "--input", "2"),
            ("ferry emulate setup",),
        ),
        (("doctor", "--emulate"), ("--to VENDOR",)),
        (("doctor", "host", "--to", "ascend", "--emulate"), ("without `host`",)),
        (("doctor", "--to", "cambricon", "--emulate"), ("no emulation",)),
    ],
)
def test_what_can_not_be(
    tmp_path: Path, nothing_set_up: dict[str, str], words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    make(tmp_path / "work", train="print('ran')\n")
    one_line(run("ferry", *words, cwd=tmp_path / "work", env=nothing_set_up), *parts)


@pytest.mark.parametrize("command", ["run", "record", "ops", "replay", "overflow", "watch", "profile"])
def test_a_device_is_simulated_or_emulated(command: str) -> None:
    result = run("ferry", command, "--to", "ascend", "--sim", "--emulate", "x.py")
    assert result.returncode == 2
    assert "exclude each other" in result.stderr


def test_nothing_is_set_up_and_then_removed(tmp_path: Path, nothing_set_up: dict[str, str]) -> None:
    result = run("ferry", "emulate", "info", env=nothing_set_up)
    assert (result.returncode, result.stderr) == (1, "")
    assert "ferry emulate setup --to ascend" in result.stdout
    result = run("ferry", "emulate", "remove", env=nothing_set_up)
    assert (result.returncode, result.stderr) == (0, "ferry emulate: there was nothing to remove\n")


def test_a_wheel_without_headers_is_no_plugin_to_build_for(
    tmp_path: Path, nothing_set_up: dict[str, str]
) -> None:
    file = wheel(tmp_path)
    result = run(
        "ferry", "emulate", "setup", "-q", "--wheel", file, env=nothing_set_up | {"CXX": "nowhere++"}
    )
    one_line(result, "$CXX is 'nowhere++'")
    result = run("ferry", "emulate", "info", env=nothing_set_up)
    assert (result.returncode, "not built" in result.stdout) == (1, True)
    result = run("ferry", "emulate", "remove", env=nothing_set_up)
    assert (result.returncode, result.stderr.count("removed:")) == (0, 2)
    assert run("ferry", "emulate", "info", env=nothing_set_up).returncode == 1
