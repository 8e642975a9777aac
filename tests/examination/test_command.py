"""`ferry doctor` as users run it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examination.making import machine
from tests.examination.stations import NPU_SMI, ascend_files, put, station
from tests.vendors.conftest import MINIMAL
from torchferry.cli.main import main
from torchferry.examination import examine
from torchferry.examination.device.station import CommandOutput
from torchferry.examination.host import machine as machine_module


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
    assert out.splitlines()[0] == "settings that reduce speed (2): CPU governor, ASCEND_GLOBAL_LOG_LEVEL"
    assert "1\\x1b[31m" in out
    assert run(capfd, "host", "--to", "ascend", "--lang", "zh")[1].startswith("2 项设置降低速度")


def test_what_may_be_faster_is_not_denied_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    host = machine(tmp_path, {}, {}, packages={"Pillow": "11.0.0"})
    monkeypatch.setattr(machine_module, "this_machine", lambda nproc=1: host)
    out = run(capfd, "--lang", "en")[1]
    assert "may be faster with another value" in out and "worth trying" in out
    assert "none of the checked settings reduces speed" not in out


@pytest.mark.usefixtures("slow")
def test_check(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(capfd, "host", "--check")[0] == 1


def test_check_of_a_good_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    host = machine(tmp_path)
    monkeypatch.setattr(machine_module, "this_machine", lambda nproc=1: host)
    code, out, _ = run(capfd, "host", "--check", "--lang", "en")
    assert (code, out.splitlines()[0]) == (0, "none of the checked settings reduces speed")
    assert run(capfd, "host", "--fix", "--lang", "en")[1] == "# nothing that a command could fix\n"


@pytest.fixture
def ascend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A server with two cards on which everything is installed, and nothing else."""
    put(tmp_path, ascend_files())
    found = station(tmp_path, smi=CommandOutput(0, NPU_SMI))
    monkeypatch.setattr(machine_module, "this_machine", lambda nproc=1: found.machine)
    monkeypatch.setattr(examine, "this_station", lambda *_, **__: found)
    return tmp_path


@pytest.mark.usefixtures("ascend")
def test_the_vendor_whose_things_are_here(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capfd, "--check", "--lang", "en")
    assert (code, out.splitlines()[0]) == (0, "ready for ascend")
    assert "--sim" not in out
    assert "note: ascend: no other vendor's components were found" in out
    assert run(capfd, "--lang", "zh")[1].splitlines()[0] == "可以使用 ascend"


def test_not_ready_because(ascend: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (ascend / "dev/hisi_hdc").unlink()
    code, out, _ = run(capfd, "--to", "ascend", "--check", "--lang", "en")
    assert (code, out.splitlines()[0]) == (1, "not ready for ascend, blocked by: control files")
    assert "ferry run --sim --to ascend SCRIPT" in out.splitlines()[-1]
    assert "ferry run --sim --to ascend SCRIPT" in run(capfd, "--to", "ascend", "--lang", "zh")[1]
    found = json.loads(run(capfd, "--to", "ascend", "--json")[1])
    assert (found["format"], found["ready"], found["counts"]["blocks"]) == ("torchferry-doctor", False, 1)
    assert found["versions"] == {
        "python": "3.11",
        "architecture": "x86_64",
        "torch": "2.9.0+cpu",
        "plugin": "2.9.0",
        "toolkit": "8.5.0",
        "driver": "25.2.0",
    }
    assert found["host"]["format"] == "torchferry-host"
    page = run(capfd, "--to", "ascend", "--format", "md", "--lang", "en")[1]
    assert page.startswith("# Machine check\n\n- not ready for ascend")
    assert "| `torch-npu` | fine | 2.9.0<br>built for torch 2.9.0 |" in page


def test_of_nobody_and_of_several_something_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    empty = station(tmp_path, packages={}, environment={}).machine
    monkeypatch.setattr(machine_module, "this_machine", lambda nproc=1: empty)
    code, out, _ = run(capfd, "--check", "--lang", "en")
    assert (code, out.splitlines()[0][:9]) == (1, "not ready")
    put(tmp_path, {"dev/davinci0": "", "dev/tcaicard0": ""})
    assert "found components of several vendors: ascend, tecorigin" in run(capfd, "--lang", "en")[1]


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
    assert "| `CPU governor` | reduces speed | performance (7), ondemand (1)<br>only" in out
    assert "name a vendor with --to" in out


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
    assert json.loads(done.stdout)["host"]["results"]


def test_a_vendor_of_the_users_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What its data do not say is unknown, and mistakes in them are named."""
    acme = tmp_path / "mine" / "acme"
    put(acme, {"vendor.toml": MINIMAL})
    options = ["--to", "acme", "--vendor-path", str(acme.parent), "--lang", "en"]
    code, out, _ = run(capfd, *options)
    assert (code, out.splitlines()[0]) == (
        0,
        "the requirements of acme are unknown: its data has no machine.toml",
    )
    assert json.loads(run(capfd, *options, "--json")[1])["ready"] is None
    assert run(capfd, *options, "--check")[0] == 1  # of what nobody knows, nobody says that it is ready
    table = '[plugin]\npackage = "torch-acme"\n[toolkit]\nname = "SDK"\nfolders = ["/nowhere/acme"]\n'
    (acme / "machine.toml").write_text(table)
    assert run(capfd, *options)[1].startswith("not ready for acme, blocked by: SDK, torch-acme")
    (acme / "machine.toml").write_text(table + "version = '('\n")
    assert "key 'toolkit.version' must be" in run(capfd, *options)[2]
    (acme / "machine.toml").write_text(table + "version = '([)'\n")
    assert "key 'toolkit.version' is not a valid regular expression" in run(capfd, *options)[2]
