"""Makes offline.toml: which ONNX the vendor's converter takes, and how it is called.

Vendors of whose converter nothing could be found have no such file: `ferry export` then says that it is unknown.
"""

from __future__ import annotations

from typing import NamedTuple

from vendor_data import toml
from vendor_data.facts import Row


class OfflineFacts(NamedTuple):
    """The table, the operators, and where both are known from."""

    table: dict[str, toml.Value]
    operators: tuple[str, ...]
    sources: tuple[Row, ...]


# framework/onnx_plugin of CANN's operator sources registers a translation for each of these, most of them for opsets 8
# to 13; Constant is read by the parser itself.
_CANN_OPERATORS = """
Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization BitShift Cast Ceil Celu Clip
Compress Concat Constant ConstantOfShape Conv ConvTranspose Cos Cosh CumSum DepthToSpace Det Div Dropout Einsum Elu
Equal Erf Exp Expand EyeLike Flatten Floor GRU Gather GatherElements GatherND Gemm GlobalAveragePool GlobalLpPool
GlobalMaxPool Greater GreaterOrEqual HardSigmoid HardSwish Hardmax Identity If InstanceNormalization IsInf IsNaN LRN
LSTM LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization LpPool MatMul Max MaxPool MaxRoiPool MaxUnpool Mean
MeanVarianceNormalization Min Mod Mul Multinomial Neg NonMaxSuppression NonZero Not OneHot Or PRelu Pad Pow RandomNormal
RandomNormalLike RandomUniform RandomUniformLike Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp
ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize ReverseSequence RoiAlign Round
ScatterElements ScatterND Selu Shape Shrink Sigmoid Sign Sin Sinh Size Slice Softmax Softplus Softsign SpaceToDepth
Split Sqrt Squeeze Sub Sum Tan Tanh TfIdfVectorizer ThresholdedRelu Tile TopK Transpose Unsqueeze Upsample Where Xor
"""

OFFLINE = {
    "ascend": OfflineFacts(
        table={
            "opset": 11,  # the guide's chapter on offline inference
            "opset_min": 11,
            "opset_max": 15,
            "tool": "atc",
            "command": [
                "--model={onnx}",
                "--framework=5",
                "--output={output}",
                "--input_shape={shapes}",
                "--soc_version={chip}",
            ],
            "dynamic": ["--dynamic_batch_size={batches}"],
            "dynamic_other": ["--dynamic_dims={profiles}", "--input_format=ND"],
            "shape": "{name}:{sizes}",
            "shape_separator": ";",
            "free_size": "-1",
            "suffix": "",  # atc adds .om itself
            "results": [".om"],
            "chip": "npu-smi info shows the chip's name; write Ascend before it",
            "chip_zh": "npu-smi info 显示芯片名称，在其前面加上 Ascend",
        },
        operators=tuple(_CANN_OPERATORS.split()),
        sources=(
            {"name": "Ascend PyTorch guide", "version": "", "path": "offline inference: exporting ONNX"},
            {"name": "CANN documentation", "version": "8.0", "path": "ATC: --framework, --input_shape, --dynamic_batch_size, --dynamic_dims, --input_format"},
            {"name": "CANN, sources of operators", "version": "", "path": "ops/built-in/framework/onnx_plugin"},
        ),
    ),
    "cambricon": OfflineFacts(
        table={
            "tool": "onnx_build",
            "tool_folders": ["/usr/local/neuware/samples/magicmind/mm_build/build"],
            "command": ["--onnx", "{onnx}", "--magicmind_model", "{output}"],
            "fixed": ["--dynamic_shape", "false", "--input_dims", "{shapes}"],
            "dynamic": ["--dynamic_shape", "true"],
            "dynamic_other": ["--dynamic_shape", "true"],
            "shape": "{sizes}",
            "shape_separator": " ",
            "suffix": ".magicmind",
            "results": [".magicmind"],
        },
        operators=(),
        sources=(
            {"name": "MagicMind samples", "version": "", "path": "mm_build: onnx_build"},
            {"name": "Cambricon/magicmind_cloud", "version": "", "path": "buildin/python_common/build_param.py"},
        ),
    ),
    "intel": OfflineFacts(
        table={
            "tool": "ovc",
            "command": ["{onnx}", "--input", "{shapes}", "--output_model", "{output}"],
            "shape": "{name}[{sizes}]",
            "shape_separator": ",",
            "free_size": "?",
            "suffix": ".xml",
            "results": [".xml", ".bin"],
        },
        operators=(),
        sources=({"name": "OpenVINO documentation", "version": "2024", "path": "model conversion: ovc"},),
    ),
}  # fmt: skip


def offline_toml(name: str) -> str:
    """The text of offline.toml."""
    facts = OFFLINE[name]
    table = {key: value for key, value in facts.table.items() if value != ""}
    return (
        toml.HEADER
        + toml.pairs(table)
        + (toml.long_list("operators", facts.operators) if facts.operators else "")
        + toml.tables("sources", facts.sources)
    )
