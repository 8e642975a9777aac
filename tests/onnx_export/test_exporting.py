"""From a model to ONNX that computes the same; what does not fit is said, and then nothing is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch

from tests.onnx_export.exports import exported_here
from tests.onnx_export.networks import Normed
from torchferry.errors import InputError, OutputError, RunError
from torchferry.onnx_export import exporters
from torchferry.onnx_export.exporting import WeightsMismatchError
from torchferry.onnx_export.model import Exported, ExportRequest
from torchferry.readiness.models.request import ModelRequest
from torchferry.settings import decode, encode


def export(
    folder: Path, name: str, *inputs: str, init: str = "", opset: int = 11, **others: Any
) -> tuple[Exported, onnx.ModelProto]:
    torch.manual_seed(0)
    output = folder / "out" / "model.onnx"
    model = ModelRequest(f"tests.onnx_export.networks:{name}", inputs, init)
    exported = exported_here(ExportRequest(model, str(output), opset, **others))
    assert [path.name for path in output.parent.iterdir()] == ["model.onnx"]
    assert decode(Exported, encode(exported)) == exported
    return exported, onnx.load(str(output))


def test_dictionaries_attention_and_free_sizes_in_an_old_opset(tmp_path: Path) -> None:
    exported, model = export(
        tmp_path,
        "Reader",
        "0.ids=2x6:int64:ints(0,50)",
        "0.mask=2x6:bool:ints(0,1)",
        dynamic=("batch", "input.ids:1=length", "input.mask:1=length"),
    )
    assert exported.is_good
    assert [port.described for port in exported.inputs] == ["[batch, length] int64", "[batch, length] bool"]
    shapes = {port.name: port.shape for port in exported.outputs}
    assert shapes == {
        "logits": ("batch", "3"),
        "states.0": ("batch", "length", "8"),
        "states.1": ("batch", "8"),
    }
    assert {tuple(check.sizes.values()) for check in exported.checks} == {(2, 6), (1, 6), (4, 6), (2, 3)}
    assert model.opset_import[0].version == 11
    assert "words.weight" in {entry.name for entry in model.graph.initializer}


def test_several_inputs_and_names_of_ones_own(tmp_path: Path) -> None:
    exported, _ = export(tmp_path, "Pair", "2x3x4", "2x5x4")
    assert [port.name for port in (*exported.inputs, *exported.outputs)] == ["left", "right", "output"]
    exported, _ = export(tmp_path, "Pair", "2x3x4", "2x5x4", input_names=("a", "b"), output_names=("c",))
    assert [port.name for port in (*exported.inputs, *exported.outputs)] == ["a", "b", "c"]
    with pytest.raises(InputError, match="1 names for 2 tensors"):
        export(tmp_path, "Pair", "2x3x4", "2x5x4", input_names=("a",))


def test_the_model_is_exported_as_in_inference(tmp_path: Path) -> None:
    exported, model = export(tmp_path, "Normed", "2x3", dynamic=("batch",))
    assert exported.is_good and "Dropout" not in exported.operators
    assert all(not node.op_type.startswith("Random") for node in model.graph.node)


def test_a_difference_is_found(tmp_path: Path) -> None:
    exported, _ = export(tmp_path, "Forgetful", "2x3", dynamic=("batch",))
    assert [check.is_good for check in exported.checks] == [True, False, False]


@pytest.mark.long
def test_an_operator_of_a_newer_opset_is_taken_apart(tmp_path: Path) -> None:
    exported, model = export(tmp_path, "Sampled", "1x3x8x8", dynamic=("batch",))
    assert exported.is_good and "decompositions" in exported.way
    assert [entry.version for entry in model.opset_import] == [11]


def test_an_opset_without_the_operator_is_an_error_that_names_it_and_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporters, "WAYS", exporters.WAYS[:2])
    with pytest.raises(RunError) as error:
        export(tmp_path, "Spectrum", "2x8")
    first, *ways = error.value.lines
    assert re.search(
        r"opset 11: aten::fft_rfft in block\.1 \(tests/onnx_export/networks\.py:\d+\); try another --opset",
        first,
    )
    assert len(ways) == 2
    assert not list(tmp_path.iterdir())


def test_simplified(tmp_path: Path) -> None:
    inputs = ("0.ids=2x6:int64:ints(0,50)", "0.mask=2x6:bool:ints(0,1)")
    before, _ = export(tmp_path, "Reader", *inputs)
    after, model = export(tmp_path, "Reader", *inputs, simplify=True)
    assert after.is_good and sum(after.operators.values()) < sum(before.operators.values())
    assert "simplified by" in after.notes[-1].en
    assert [entry.version for entry in model.opset_import] == [11]


def test_weights_of_a_checkpoint(tmp_path: Path) -> None:
    torch.manual_seed(1)
    weights = {f"module._orig_mod.{name}": tensor for name, tensor in Normed().state_dict().items()}
    torch.save({"ema": weights, "model": weights, "epoch": 1}, tmp_path / "a.pth")
    exported, model = export(tmp_path, "Normed", "2x3", checkpoint=str(tmp_path / "a.pth"))
    said = [note.en for note in exported.notes]
    assert "model of" in said[0] and "also contains ema" in said[1] and "module._orig_mod." in said[2]
    (found,) = (entry for entry in model.graph.initializer if entry.name.endswith("0.weight"))
    assert exported.is_good and list(found.dims) == [4, 3]


def test_a_checkpoint_of_another_model(tmp_path: Path) -> None:
    weights = Normed().state_dict()
    weights["layers.0.wieght"] = weights.pop("layers.0.weight")
    weights["layers.0.bias"] = torch.ones(9)
    torch.save(weights, tmp_path / "a.pth")
    with pytest.raises(WeightsMismatchError) as error:
        export(tmp_path, "Normed", "2x3", checkpoint=str(tmp_path / "a.pth"))
    assert error.value.lines[1:] == (
        "missing in the file: layers.0.weight (closest: layers.0.wieght)",
        "not in the model: layers.0.wieght (closest: layers.0.weight)",
        "shape mismatch: layers.0.bias is 9 in the file, 4 in the model",
    )
    exported, _ = export(tmp_path, "Normed", "2x3", checkpoint=str(tmp_path / "a.pth"), lenient=True)
    assert exported.is_good and "1 weights are not in the file" in exported.notes[-1].en


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"inputs": ()}, "add --input"),
        ({"dynamic": ("a-b",)}, "--dynamic a-b: write a name"),
        ({"dynamic": ("other:0=n",)}, "no such input; the inputs are input"),
        ({"dynamic": ("input:5=n",)}, "has only 2 axes, counted from 0"),
        ({"opset": 5}, "start at opset 7"),
    ],
)
def test_bad_requests(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    inputs = changes.pop("inputs", ("2x3",))
    with pytest.raises(InputError, match=said):
        export(tmp_path, "Normed", *inputs, **changes)
    assert not list(tmp_path.iterdir())


def test_a_size_that_the_model_itself_rejects_is_named(tmp_path: Path) -> None:
    exported, _ = export(tmp_path, "Two", "1x3", dynamic=("batch",), batches=(2, 4))
    assert {check.sizes["batch"] for check in exported.checks} == {1, 2}
    (note,) = exported.notes
    assert (
        "not compared for batch=4: the model itself does not accept this size (ValueError: two at most"
        in note.en
    )


def test_names_that_meet_are_told_apart_or_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="mask: used for two inputs or outputs; choose other names"):
        export(tmp_path, "Passing", "mask=2x3")
    exported, _ = export(tmp_path, "Passing", "mask=2x3", output_names=("x", "y", "z"))
    assert exported.is_good and [port.name for port in exported.outputs] == ["x", "y", "z"]


@pytest.mark.parametrize("way", [0, 1, *(pytest.param(way, marks=pytest.mark.long) for way in (2, 3))])
def test_weights_beyond_the_limit_lie_in_a_file_of_their_own(
    way: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of 2 GiB, lowered; whichever way leads to ONNX."""
    monkeypatch.setattr(exporters, "LARGEST", 1000)
    monkeypatch.setattr(exporters, "WAYS", exporters.WAYS[way : way + 1])
    output = tmp_path / "model.onnx"
    request = ExportRequest(
        ModelRequest("tests.onnx_export.networks:Steep", ("2x64",)), str(output), 18, simplify=way == 0
    )
    assert exported_here(request).is_good
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    assert output.stat().st_size < 8000 < 64 * 64 * 4 < (tmp_path / "model.onnx.data").stat().st_size
    assert output.stat().st_mode == (tmp_path / "model.onnx.data").stat().st_mode
    output.unlink()
    with pytest.raises(OutputError, match=r"model\.onnx\.data: already exists"):
        exported_here(request)
    assert not output.exists()
