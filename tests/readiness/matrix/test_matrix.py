"""What falls back on the simulated device is what was predicted from a run on the CPU, for every model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.sim.models.names import GUIDE_NAMES
from tests.sim.models.process import ROOT, ModelProcess
from torchferry.readiness import capture_json
from torchferry.readiness.judge import judge, predicted_fallbacks
from torchferry.readiness.model import Capture
from torchferry.vendors.model import Vendor
from torchferry.vendors.ops import load_ops
from torchferry.vendors.registry import get_vendor, vendor_names

from .folders import COMMON, EVERYTHING, without

_RUNNER = "tests.readiness.matrix.runner"
_COMPLETE = [name for name in vendor_names() if load_ops(Path(get_vendor(name).folder)).complete]
# Each vendor's own table, one without operators that most models call, and an empty one: then every name is compared.
# The cut tables of the others differ in the names of a few kernels; the small models run with one of them.
_OWN: list[tuple[str, tuple[str, ...]]] = [(name, ()) for name in _COMPLETE]
_TABLES = [*_OWN, (_COMPLETE[0], COMMON), (_COMPLETE[1], EVERYTHING)]
_TABLES_OF_SMALL = [(_COMPLETE[-1], COMMON), (_COMPLETE[0], EVERYTHING)]
# What the small models are there for.
_AMONG_SMALL = {
    "GRU": {"aten::embedding_dense_backward", "aten::cat.out", "aten::native_dropout"},
    "LSTM": {"aten::native_batch_norm", "aten::_convolution", "aten::native_dropout_backward"},
    "classifier": {"aten::max_pool2d_with_indices.out", "aten::native_batch_norm", "aten::addmm.out"},
    "transformer": {"aten::_softmax.out", "aten::gelu.out", "aten::native_layer_norm_backward"},
}

Calls = dict[str, int]


@dataclass(frozen=True)
class Device:
    """A vendor's device that falls back, whatever the vendor's own does, so that a step meets all that is missing."""

    vendor: Vendor
    process: ModelProcess

    def missing(self, name: str) -> Calls:
        answer = self.process.ask(name)
        assert "error" not in answer, answer["error"]
        missing: Calls = answer["missing"]
        return missing


def _cut(table: tuple[str, tuple[str, ...]], folder: Path) -> Path:
    name, patterns = table
    return without(get_vendor(name), patterns, folder)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelProcess]:
    process = ModelProcess(tmp_path_factory.mktemp("captures") / "stderr.txt", _RUNNER)
    yield process
    process.close()


@pytest.fixture(scope="module")
def devices(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Device]]:
    found = []
    for table in _TABLES:
        folder = tmp_path_factory.mktemp(table[0])
        path = _cut(table, folder)
        options = ("--vendor", table[0], "--vendor-path", str(path))
        process = ModelProcess(folder / "stderr.txt", _RUNNER, *options)
        found.append(Device(get_vendor(table[0], [path]), process))
    yield found
    for device in found:
        device.process.close()


def _loaded(answer: dict[str, object]) -> Capture:
    assert "error" not in answer, answer["error"]
    return capture_json.load(json.dumps(answer["capture"]), str(answer["name"]))


def _predicted(capture: Capture, vendor: Vendor) -> Calls:
    return predicted_fallbacks(judge(capture, vendor))


@pytest.mark.long
@pytest.mark.parametrize("name", GUIDE_NAMES)
def test_what_falls_back_was_predicted(name: str, host: ModelProcess, devices: list[Device]) -> None:
    capture = _loaded(host.ask(name))
    predicted = [_predicted(capture, device.vendor) for device in devices]
    assert predicted == [device.missing(name) for device in devices]
    assert predicted[: len(_OWN)] == [{}] * len(_OWN)
    assert all(predicted[len(_OWN) :])


@pytest.mark.parametrize("table", _TABLES_OF_SMALL, ids=["cut", "empty"])
def test_what_falls_back_in_small_models_was_predicted(
    table: tuple[str, tuple[str, ...]], tmp_path: Path
) -> None:
    path = _cut(table, tmp_path)
    name = table[0]
    command = [sys.executable, "-m", _RUNNER, "--small", "--vendor", name, "--vendor-path", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    captures, missing = answers[: len(answers) // 2], answers[len(answers) // 2 :]
    vendor = get_vendor(name, [path])
    predicted = {answer["name"]: _predicted(_loaded(answer), vendor) for answer in captures}
    assert predicted == {answer["name"]: answer.get("missing", answer.get("error")) for answer in missing}
    assert predicted.keys() == _AMONG_SMALL.keys()
    assert all(names <= predicted[model].keys() for model, names in _AMONG_SMALL.items())
