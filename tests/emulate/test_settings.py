"""Which device a program gets, what its processes are told, and what the variables can not mean."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.commands import one_line
from tests.emulate.wheels import TORCH, wheel
from tests.launch.ways import python
from torchferry import variables
from torchferry.emulate import build, plugins, toolkits
from torchferry.emulate.environment import EmulationSettings, settings_for
from torchferry.errors import FerryError, RunError
from torchferry.files.user_folder import VARIABLE as CACHE_VARIABLE
from torchferry.launch import plugin
from torchferry.launch.environment import AUTOLOAD_SWITCH, STARTUP, child_environment
from torchferry.launch.place import DeviceKind
from torchferry.launch.process import Role, role_in, take_part
from torchferry.proof.settings import ProofSettings
from torchferry.runtime.settings import LayerSettings
from torchferry.vendors.registry import get_vendor

ASCEND = get_vendor("ascend")
SETTINGS = EmulationSettings(
    "ascend", "/a b/ü", "torch_npu", 3, 5 << 30, "Ascend910B1", True, ("/v",), True, "/s"
)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plugin that is set up."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv(plugins.VARIABLE, raising=False)
    return plugins.set_up(ASCEND, wheel(tmp_path), lambda line: None).folder


def test_settings_arrive_as_they_were_sent() -> None:
    environment = child_environment({"HOME": "/h", variables.TO: "x"}, ASCEND, SETTINGS, None)
    assert EmulationSettings.read(environment) == SETTINGS
    assert variables.TO not in environment
    assert role_in(environment) == Role(emulate=SETTINGS)
    assert environment["PYTHONPATH"] == str(STARTUP)
    assert EmulationSettings.read({}) is None


def test_a_layer_and_a_record_go_with_it() -> None:
    layer = LayerSettings("ascend")
    proof = ProofSettings("/records")
    environment = child_environment({}, ASCEND, SETTINGS, layer, proof.environment())
    assert role_in(environment) == Role(layer=layer, parts=(proof,), emulate=SETTINGS)


def test_pytorch_loads_nothing_by_itself_where_the_plugin_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.launch.ways import with_plugin

    monkeypatch.syspath_prepend(with_plugin(tmp_path))
    environment = child_environment({}, ASCEND, SETTINGS, None)
    assert environment[AUTOLOAD_SWITCH] == "0"
    assert environment["PYTHONPATH"] == str(STARTUP)


def test_what_is_not_said_is_a_typical_server(kept: Path) -> None:
    settings = settings_for(ASCEND)
    assert (settings.plugin, settings.module, settings.devices) == (str(kept), "torch_npu", 8)
    assert (settings.memory, settings.card) == (64 << 30, "Ascend910B2")
    assert settings_for(ASCEND, 2, "1GiB", native=True).native
    for devices, memory in ((0, None), (65, None), (1, "much")):
        with pytest.raises(RunError):
            settings_for(ASCEND, devices, memory)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"TORCHFERRY_EMULATE": "1"}, "set TORCHFERRY_TO=VENDOR"),
        ({"TORCHFERRY_EMULATE": "yes"}, "TORCHFERRY_EMULATE can't be read"),
        ({"TORCHFERRY_EMULATE": "[1]"}, "TORCHFERRY_EMULATE can't be read"),
        ({"TORCHFERRY_EMULATE": '{"vendor": "ascend"}'}, "TORCHFERRY_EMULATE can't be read"),
        ({"TORCHFERRY_TO": "ascend", "TORCHFERRY_EMULATE": "yes"}, "TORCHFERRY_EMULATE can't be read"),
        (
            {"TORCHFERRY_TO": "ascend", "TORCHFERRY_EMULATE": "1", "TORCHFERRY_SIM": "1"},
            "can't be set together; unset one",
        ),
        ({"TORCHFERRY_TO": "cambricon", "TORCHFERRY_EMULATE": "1"}, "cambricon: no emulation"),
    ],
)
def test_what_the_environment_can_not_mean(given: dict[str, str], words: str) -> None:
    with pytest.raises(FerryError, match=words):
        take_part(given)


def test_a_plugin_that_is_gone_is_one_line(tmp_path: Path) -> None:
    told = json.loads(SETTINGS.encode()) | {"plugin": str(tmp_path), "vendor_paths": [], "summary_folder": ""}
    result = python("-c", "import torch; print('went on')", TORCHFERRY_EMULATE=json.dumps(told))
    one_line(result, "torch_npu no longer exists", "ferry emulate setup --to ascend")


def test_nothing_is_imported_where_it_is_switched_off() -> None:
    code = "import sys, torch; print('torchferry.launch.process' in sys.modules)"
    assert python("-c", code, TORCHFERRY_EMULATE="0").stdout == "False\n"


def test_the_choice(tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(variables.EMULATE, raising=False)
    chosen = plugin.choose(ASCEND)
    assert chosen.kind is DeviceKind.SIMULATED and chosen.reason is not None  # nothing is built
    assert "torch_npu is not installed" in chosen.reason.en
    folder = build._build(ASCEND, kept)[1].key
    built = Path(os.environ[CACHE_VARIABLE]) / build.CACHE / folder
    built.mkdir(parents=True)
    for part in toolkits.load("cann").libraries:
        (built / part.name).touch()
    chosen = plugin.choose(ASCEND)
    assert chosen.kind is DeviceKind.EMULATED and chosen.reason is not None
    assert "emulated CANN" in chosen.reason.en
    assert plugin.choose(ASCEND, may_emulate=False).kind is DeviceKind.SIMULATED
    monkeypatch.setenv(variables.EMULATE, "0")
    assert plugin.choose(ASCEND).kind is DeviceKind.SIMULATED
    assert plugin.choose(get_vendor("intel")).kind is DeviceKind.REAL


def test_a_plugin_without_its_toolkit_is_no_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    (site / "torch_npu" / "lib").mkdir(parents=True)
    (site / "torch_npu" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(site))
    assert plugin.choose(ASCEND).kind is DeviceKind.REAL  # it knows itself what it needs
    (site / "torch_npu" / "lib" / "libtorch_npu.so").touch()
    chosen = plugin.choose(ASCEND)
    assert chosen.kind is DeviceKind.SIMULATED and chosen.reason is not None
    assert "libhccl.so of CANN is not" in chosen.reason.en
    toolkit = tmp_path / "toolkit"
    toolkit.mkdir()
    for name in ("hccl", "ascendcl", "acl_op_compiler", "ge_runner", "graph"):
        (toolkit / f"lib{name}.so").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere:{toolkit}")
    assert plugin.choose(ASCEND).kind is DeviceKind.REAL


def test_a_toolkit_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    source = Path(ASCEND.folder, "vendor.toml").read_text("utf-8")
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "vendor.toml").write_text(
        source.replace('toolkit = "cann"', 'toolkit = "acme"').replace('name = "ascend"', 'name = "acme"', 1)
    )
    with pytest.raises(RunError, match=r"the toolkit 'acme'; only these can be emulated: cann"):
        plugins.refuse_without_emulation(get_vendor("acme", (tmp_path / "acme",)))


def test_libraries_come_after_those_that_they_link() -> None:
    for name in toolkits.names():
        seen: set[str] = set()
        for part in toolkits.load(name).libraries:
            assert set(part.links) <= seen, part.name
            seen.add(part.name)
        assert all(
            (toolkits.load(name).sources / folder).is_dir()
            for part in toolkits.load(name).libraries
            for folder in part.folders
        )


def test_the_key_follows_the_headers(kept: Path) -> None:
    before = build._build(ASCEND, kept)[1].key
    (kept / f"torch_npu-{TORCH}.dist-info" / "RECORD").write_text("other\n")
    assert build._build(ASCEND, kept)[1].key != before
