"""What is said of a difference between onnxruntime and PyTorch: rounding is called rounding, a mistake a mistake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
import torch

from tests.onnx_export.exports import exported_here
from torchferry.onnx_export import exporting
from torchferry.onnx_export.exporters import Asked
from torchferry.onnx_export.model import Check, Exported, ExportRequest, OutputVerdict
from torchferry.onnx_export.report import ExportReport, page_of
from torchferry.readiness.models.request import ModelRequest
from torchferry.report.formats import Options
from torchferry.report.page import to_text
from torchferry.text import Language
from torchferry.vendors.offline import OfflineTable


def export(folder: Path, name: str, *inputs: str, init: str = "") -> Exported:
    torch.manual_seed(0)
    model = ModelRequest(f"tests.onnx_export.networks:{name}", inputs, init)
    return exported_here(ExportRequest(model, str(folder / "model.onnx"), 11))


def check_of(exported: Exported) -> Check:
    (check,) = exported.checks
    return check


def words(exported: Exported, language: Language) -> str:
    options = Options(language, width=400)
    return to_text(page_of(ExportReport(exported, None, OfflineTable(), [], False), options), options)


def test_a_difference_that_is_small_for_its_scale_is_rounding(tmp_path: Path) -> None:
    exported = export(tmp_path, "Steep", "32x64")
    check = check_of(exported)
    assert check.error > 1e-4 > 1e-5 > check.relative
    assert check.verdict is OutputVerdict.ROUNDING and exported.is_good
    assert check.pytorch_off and check.onnx_off and check.onnx_off < 8 * check.pytorch_off
    assert "single-precision rounding, not a mistake of the export: compared with double precision" in words(
        exported, "en"
    )
    assert "属于单精度舍入误差，并非导出错误" in words(exported, "zh")


def test_small_values_are_judged_by_their_scale(tmp_path: Path) -> None:
    assert check_of(export(tmp_path, "Steep", "32x64", init="gain=1e-9")).verdict is OutputVerdict.SAME


def test_a_model_that_multiplies_rounding_errors_cant_be_judged(tmp_path: Path) -> None:
    exported = export(tmp_path, "Chaotic", "2x30")
    assert check_of(exported).verdict is OutputVerdict.CHAOTIC and not exported.is_good
    assert "can't be judged" in words(exported, "en") and "无法判断" in words(exported, "zh")


def test_a_model_that_draws_random_numbers_in_inference(tmp_path: Path) -> None:
    exported = export(tmp_path, "Dropped", "2x30")
    assert check_of(exported).verdict is OutputVerdict.RANDOM and not exported.is_good
    assert "F.dropout(x) without training=self.training" in words(exported, "en")


def test_zeros_say_nothing(tmp_path: Path) -> None:
    exported = export(tmp_path, "Zero", "2x30")
    assert check_of(exported).verdict is OutputVerdict.EMPTY and exported.is_good
    assert "is 0 or NaN everywhere, so a comparison is meaningless" in words(exported, "en")
    assert "onnxruntime computes the same as PyTorch" not in words(exported, "en")
    assert "no result could be compared" in words(exported, "en")


def _attribute(operator: str, name: str, value: object) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        node = next(node for node in model.graph.node if node.op_type == operator)
        kept = [attribute for attribute in node.attribute if attribute.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, onnx.helper.make_attribute(name, value)])

    return change


def _weights_of(
    start: str, change: Callable[[torch.Tensor], torch.Tensor]
) -> Callable[[onnx.ModelProto], None]:
    def changed(model: onnx.ModelProto) -> None:
        entry = next(entry for entry in model.graph.initializer if entry.name.startswith(start))
        weights = change(torch.from_numpy(onnx.numpy_helper.to_array(entry).copy()))
        entry.CopyFrom(onnx.numpy_helper.from_array(weights.numpy(), entry.name))

    return changed


MISTAKES = {
    "epsilon of a BatchNorm": _attribute("BatchNormalization", "epsilon", 1e-2),
    "corners aligned": _attribute("Resize", "coordinate_transformation_mode", "half_pixel"),
    "axes exchanged": _attribute("Transpose", "perm", [0, 1, 2, 3]),
    "axis of a softmax": _attribute("Softmax", "axis", 2),
    "padding on the other side": _attribute("Conv", "pads", [2, 0, 0, 0]),
    "weights transposed": _weights_of("conv.weight", lambda weights: weights.transpose(2, 3).contiguous()),
    "weights in half precision": _weights_of("conv.weight", lambda weights: weights.bfloat16().float()),
}


@pytest.mark.parametrize("gain", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_the_export_is_found_at_every_scale(
    mistake: str, gain: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = exporting.export

    def wrong(asked: Asked) -> tuple[onnx.ModelProto, str]:
        model, way = original(asked)
        MISTAKES[mistake](model)
        return model, way

    monkeypatch.setattr(exporting, "export", wrong)
    exported = export(tmp_path, "Planted", "2x3x9x9", init=f"gain={gain}")
    assert not exported.is_good
    assert check_of(exported).verdict in (OutputVerdict.DIFFERENT, OutputVerdict.FAILED)
    assert "does not" in words(exported, "en") and "结果一致：" not in words(exported, "zh")


@pytest.mark.parametrize("gain", [1e-6, 1.0, 1e4])
def test_the_same_model_without_a_mistake(gain: float, tmp_path: Path) -> None:
    assert export(tmp_path, "Planted", "2x3x9x9", init=f"gain={gain}").is_good
