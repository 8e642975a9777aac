"""Which device a program gets: the vendor's real one, a simulated one, none; and what is refused."""

from __future__ import annotations

import importlib
import json
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

import pytest

from tests.cli.commands import make, one_line
from torchferry import variables
from torchferry.errors import FerryError
from torchferry.launch import plugin
from torchferry.launch.environment import STARTUP, _called_by_torch, child_environment
from torchferry.launch.parts import parts_in
from torchferry.launch.process import Role, role_in, take_part
from torchferry.perf.collect.settings import ProfileSettings
from torchferry.proof.settings import ProofSettings
from torchferry.runtime.settings import LayerSettings, TypeChecks
from torchferry.sim.environment import SimSettings, settings_for
from torchferry.vendors.registry import get_vendor

from .ways import ferry_run, python, with_plugin

WHICH = """\
import sys
import torch
import torch_npu
print(getattr(torch_npu, "FROM", "the simulator"), torch.cuda.device_count(), torch.ones(1).cuda().device)
"""
ASCEND = get_vendor("ascend")


def test_the_real_plugin_is_used_where_it_is_installed(tmp_path: Path) -> None:
    site = with_plugin(tmp_path / "site")
    make(tmp_path, train=WHICH)
    result = ferry_run("--to", "ascend", tmp_path / "train.py", PYTHONPATH=site)
    assert (result.stdout, result.stderr) == ("the vendor 2 npu:0\n", "")
    result = ferry_run("--sim", "-q", "--to", "ascend", tmp_path / "train.py", PYTHONPATH=site)
    assert (result.stdout, result.stderr) == ("the simulator 8 npu:0\n", "")
    result = python(tmp_path / "train.py", PYTHONPATH=site, TORCHFERRY_TO="ascend")
    assert (result.stdout, result.stderr) == ("the vendor 2 npu:0\n", "")


@pytest.mark.parametrize("option", [("--devices", 2), ("--memory", "1GiB"), ("--strict",), ("-o", "s")])
def test_options_of_the_simulator_are_refused_with_the_real_plugin(
    tmp_path: Path, option: tuple[object, ...]
) -> None:
    make(tmp_path, train="print('ran')\n")
    site = with_plugin(tmp_path / "site")
    result = ferry_run("--to", "ascend", *option, tmp_path / "train.py", PYTHONPATH=site)
    one_line(result, str(option[0]), "simulated", "--sim")


def test_simulation_can_be_asked_for_without_the_launcher(tmp_path: Path) -> None:
    make(tmp_path, train=WHICH)
    result = python(tmp_path / "train.py", TORCHFERRY_TO="ascend", TORCHFERRY_SIM="1")
    assert (result.stdout, result.stderr) == ("the simulator 8 npu:0\n", "")


def test_a_converted_program_runs_with_or_without_the_redirection(tmp_path: Path) -> None:
    make(
        tmp_path,
        train="import torch, torch_npu\nprint(torch.ones(1).npu().device, torch.cuda.is_available())\n",
    )
    result = ferry_run("-q", "--sim", "--to", "ascend", tmp_path / "train.py")
    assert (result.stdout, result.stderr) == ("npu:0 True\n", "")
    result = ferry_run("-q", "--sim", "--converted", "--to", "ascend", tmp_path / "train.py")
    assert (result.stdout, result.stderr) == ("npu:0 False\n", "")


def test_the_choices_of_the_layer_arrive(tmp_path: Path) -> None:
    make(
        tmp_path,
        train="import torch\nprint(torch.cuda.get_device_capability(), torch.version.cuda, "
        "torch.device('cuda').type == 'cuda')\n",
    )
    chosen = ("--capability", "9.0", "--cuda-version", "12.4", "--type-checks", "vendor")
    result = ferry_run("-q", "--to", "ascend", *chosen, tmp_path / "train.py")
    assert result.stdout == "(9, 0) 12.4 False\n", result.stderr


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"TORCHFERRY_TO": "ascnd"}, "did you mean 'ascend'"),
        ({"TORCHFERRY_SIM": "1"}, "set TORCHFERRY_TO=VENDOR"),
        ({"TORCHFERRY_SIM": "yes"}, "TORCHFERRY_SIM can't be read"),
        ({"TORCHFERRY_SIM": "[1]"}, "TORCHFERRY_SIM can't be read"),
        ({"TORCHFERRY_LAYER": '["ascend"]'}, "set TORCHFERRY_TO=VENDOR"),
        ({"TORCHFERRY_LAYER": '{"vendr": "ascend"}'}, "TORCHFERRY_LAYER can't be read"),
    ],
)
def test_what_the_environment_can_not_mean(settings: dict[str, str], words: str) -> None:
    with pytest.raises(FerryError, match=words):
        take_part(settings)


def test_an_error_while_pytorch_loads_is_one_line() -> None:
    settings = {"TORCHFERRY_TO": "intel", "TORCHFERRY_SIM": "1"}
    result = python("-c", "import torch; print('went on')", **settings)
    one_line(result, "torchferry: intel", "xpu", "plugin")


def test_a_plugin_that_can_not_be_simulated_beside_is_refused(tmp_path: Path) -> None:
    site = with_plugin(tmp_path)
    result = python("-c", "import torch", PYTHONPATH=site, TORCHFERRY_TO="ascend", TORCHFERRY_SIM="1")
    one_line(result, "torch_npu", "ferry run --sim --to ascend")


def test_a_plugin_that_can_not_be_imported_is_one_line(tmp_path: Path) -> None:
    site = with_plugin(tmp_path, "raise ImportError('libhccl.so: cannot open shared object file')\n")
    make(tmp_path, train="import torch\nprint('went on')\n")
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}  # else PyTorch itself fails on it before us
    result = ferry_run("--to", "ascend", tmp_path / "train.py", PYTHONPATH=site, **off)
    one_line(result, "torch_npu", "libhccl.so")


def test_import_finds_no_device_and_says_what_to_set(tmp_path: Path) -> None:
    make(tmp_path, train="import torchferry.auto\nimport torch\nprint(torch.device('cuda'))\n")
    result = python(tmp_path / "train.py")
    assert result.stdout == "cuda\n"
    assert result.stderr.count("\n") == 1
    assert "TORCHFERRY_TO" in result.stderr
    assert "ascend" in result.stderr


def test_import_leaves_cuda_alone_where_it_is(tmp_path: Path) -> None:
    pretend = "import torch\ntorch.cuda.is_available = lambda: True\n"
    make(tmp_path, train=f"{pretend}import torchferry.auto\nprint(torch.device('cuda'))\n")
    result = python(tmp_path / "train.py", PYTHONPATH=with_plugin(tmp_path / "site"))
    assert (result.stdout, result.stderr) == ("cuda\n", "")


def test_import_torch_costs_nothing_when_nothing_is_asked_for() -> None:
    code = "import sys, torch; print(sorted(name for name in sys.modules if name.startswith('torchferry')))"
    result = python("-c", code)
    assert (
        result.stdout
        == "['torchferry', 'torchferry.launch', 'torchferry.launch.autoload', 'torchferry.variables']\n"
    ), result.stderr


def test_the_start_of_python_knows_the_variable_by_its_name() -> None:
    assert f'"{variables.EMULATE}"' in (STARTUP / "sitecustomize.py").read_text("utf-8")


@pytest.mark.parametrize(
    "chosen",
    [
        "settings:Anything",
        "os:system",
        "torchferry.__main__:main",
        "torchferry.settings:Settings",
        "torchferry.proof.settings:PartSettings",
        "torchferry.proof.settings:Projects",
        "torchferry.nothing.settings:Part",
        "torchferry..settings:Part",
        "torchferry.perf.collect.settings:ProfileSettings",  # of another variable
    ],
)
def test_a_variable_starts_nothing_but_its_own_parts(chosen: str) -> None:
    with pytest.raises(FerryError, match=r"PROVE can't be read \(it names no settings of ours\)"):
        parts_in({variables.PROVE: json.dumps({"settings": chosen})})


def test_parts_arrive_as_they_were_sent_in_the_order_in_which_they_begin() -> None:
    profile, proof = ProfileSettings("/f", 1, 2, vendor_paths=("/a b/ü",)), ProofSettings("/records")
    assert parts_in({**profile.environment(), **proof.environment(), variables.OPS: ""}) == (proof, profile)


def test_a_plugin_counts_only_if_it_is_the_vendors_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchferry.sim.shims import shim_folders

    assert not plugin.is_installed(ASCEND)
    monkeypatch.setattr(sys, "path", [*map(str, shim_folders(ASCEND)), *sys.path])
    assert not plugin.is_installed(ASCEND)
    monkeypatch.setitem(sys.modules, ASCEND.plugin, ModuleType(ASCEND.plugin))
    assert not plugin.is_installed(ASCEND)
    monkeypatch.delitem(sys.modules, ASCEND.plugin)
    monkeypatch.syspath_prepend(with_plugin(tmp_path))
    importlib.invalidate_caches()
    assert plugin.is_installed(ASCEND)
    assert not plugin.is_installed(get_vendor("intel"))


def test_a_childs_environment_says_what_it_does_and_no_more() -> None:
    ours = {"HOME": "/h", "TORCHFERRY_TO": "tecorigin", "TORCHFERRY_SIM": "1", "TORCHFERRY_LANG": "zh"}
    proof = ProofSettings("/records")
    sim, layer = settings_for(ASCEND), LayerSettings("ascend", type_checks=TypeChecks.VENDOR)
    both = child_environment(ours, ASCEND, sim, layer, proof.environment())
    assert SimSettings.read(both) == sim
    assert LayerSettings.read(both) == layer
    assert (both["HOME"], both["TORCHFERRY_LANG"], both["PYTHONHASHSEED"]) == ("/h", "zh", "0")
    assert variables.TO not in both
    assert role_in(both) == Role(sim, layer, (proof,))
    nothing = child_environment(ours, ASCEND, None, None)
    assert nothing == {"HOME": "/h", "TORCHFERRY_LANG": "zh"}
    reference = child_environment(ours, None, None, LayerSettings("cpu"))
    assert set(reference) == {"HOME", "TORCHFERRY_LANG", variables.LAYER}


def test_what_pytorch_calls_is_known_as_pytorch_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def known() -> list[str]:
        return [entry.value for entry in entry_points(group="torch.backends")]

    assert sorted(_called_by_torch()) == sorted(known())
    before = "[console_scripts]\nx = no:no\n[torch.backends]\n"
    make(
        tmp_path / "new/acme-2.dist-info",
        **{"entry_points.txt": f"{before}acme = acme:go\n\n[z]\na = no:no\n"},
    )
    make(tmp_path / "old/acme.egg-info", **{"entry_points.txt": f"{before}acme = acme:went\n"})
    monkeypatch.setattr(sys, "path", [str(tmp_path / "new"), str(tmp_path / "old")])
    assert list(_called_by_torch()) == known() == ["acme:go"]


def test_where_pytorch_does_not_call_us_python_does() -> None:
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    given = child_environment(off, ASCEND, None, LayerSettings("ascend"))
    assert given["PYTHONPATH"] == str(STARTUP)
