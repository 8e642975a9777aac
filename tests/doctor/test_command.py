"""`ferry doctor` as users run it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doctor.making import machine
from torchferry.cli.main import main
from torchferry.doctor.host import machine as machine_module


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host with a governor that costs, a shell variable that costs, and a package that could be better."""
    host = machine(
        tmp_path,
        {"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "ondemand"},
        {"ASCEND_GLOBAL_LOG_LEVEL": "0", "HCCL_EXEC_TIMEOUT": "1\x1b[31m"},
        packages={"Pillow": "11.0.0"},
    )
    monkeypatch.setattr(machine_module, "this_machine", lambda nproc=1: host)


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["doctor", *arguments])
    return code, *capfd.readouterr()


@pytest.mark.usefixtures("slow")
def test_the_verdict_comes_first(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capfd, "host", "--to", "ascend", "--lang", "en")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "2 things cost speed: CPU governor, ASCEND_GLOBAL_LOG_LEVEL"
    assert "1\\x1b[31m" in out
    assert "so far" not in out
    assert run(capfd, "host", "--to", "ascend", "--lang", "zh")[1].startswith("2 项降低速度")


@pytest.mark.usefixtures("slow")
def test_check(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(capfd, "host", "--check")[0] == 1


def test_check_of_a_good_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    host = machine(tmp_path)
    monkeypatch.setattr(machine_module, "this_machine", lambda nproc=1: host)
    code, out, _ = run(capfd, "--check", "--lang", "en")
    assert (code, out.splitlines()[0]) == (0, "nothing that was looked at costs speed")
    assert "so far the doctor looks at the host only" in out
    assert run(capfd, "--fix", "--lang", "en")[1] == "# nothing to fix by a command\n"


@pytest.mark.usefixtures("slow")
def test_fix_prints_commands_of_which_a_shell_runs_only_settings(capfd: pytest.CaptureFixture[str]) -> None:
    out = run(capfd, "host", "--fix", "--to", "ascend", "--lang", "en")[1]
    assert "#   sudo cpupower frequency-set -g performance" in out
    assert "#   pip uninstall -y pillow" in out
    live = [line for line in out.splitlines() if not line.startswith("#")]
    assert "export ASCEND_GLOBAL_LOG_LEVEL=3" in live
    assert all(line.startswith(("export ", "unset ", "ulimit ")) for line in live)
    done = subprocess.run(
        ["bash", "-c", f"{out}\necho $ASCEND_GLOBAL_LOG_LEVEL"], capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("3\n", "")


@pytest.mark.usefixtures("slow")
def test_json(capfd: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capfd, "host", "--to", "ascend", "--format", "json")[1])
    assert (found["format"], found["vendor"], found["counts"]["costs"]) == ("torchferry-host", "ascend", 2)
    worst = found["results"][0]
    assert (worst["id"], worst["status"], worst["commands"][-1]["reach"]) == ("governor", "costs", "root")


@pytest.mark.usefixtures("slow")
def test_markdown_explains_everything(capfd: pytest.CaptureFixture[str]) -> None:
    out = run(capfd, "host", "--format", "md", "--lang", "en")[1]
    assert "| `CPU governor` | costs speed | performance (7), ondemand (1)<br>only" in out
    assert "name one with --to" in out


def test_bad_usage(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capfd, "--fix", "--format", "json")
    assert (code, "leave one of them out" in err) == (2, True)
    assert run(capfd, "--to", "acsend")[2].startswith(
        "ferry: unknown vendor 'acsend'; did you mean 'ascend'?"
    )


def test_torch_is_not_needed() -> None:
    code = "import sys; sys.modules['torch'] = sys.modules['PIL'] = None\n"
    code += "from torchferry.cli.main import main; sys.exit(main(['doctor', '--format', 'json', '--to', 'ascend']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["results"]
