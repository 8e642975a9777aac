"""How a vendor's runtime logs operators on the host, read from the sources named below."""

from __future__ import annotations

from typing import NamedTuple

from vendor_data import toml
from vendor_data.facts import Row


class HostLogFacts(NamedTuple):
    """The forms of its lines, and the codes in them."""

    table: dict[str, toml.Value]
    dtypes: dict[str, str]
    formats: dict[str, str]
    sources: tuple[Row, ...]


_ACL = HostLogFacts(
    table={
        # ACL_LOG_INFO("aclopCompile::aclOp = %s", ...) of aclopCompile and aclopCompileAndExecute; V2 is the newer call
        "operator": ["aclopCompile::aclOp = OpType: ", "aclopCompileV2::aclOp = OpType: "],
        "compile": "To compile op: ",
        # OpCompiler::CompileOp logs the first before (INFO), the second after it (EVENT; newer releases)
        "compile_line": r"To compile op: (?P<type>[^,\s]+)(?:, compile time is (?P<milliseconds>[\d.]+) millisecond)?",
        "miss": "Match static opModels fail",
        "miss_line": r"opType = (?P<type>[^,\s]+)",
        "header": (
            r"\[(?P<level>[A-Z]+)\] \w+\((?P<process>\d+),[^)]*\):"
            r"(?P<time>\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d(?:\.\d+)*)(?: \[[^\]]*\] ?(?P<thread>\d+))?"
        ),
        "tensor": (
            r"(?P<side>In|Out)putDesc\[\d+\]: \[TensorDesc\] DataType = (?P<dtype>-?\w+), Format = (?P<format>-?\w+)"
            r"(?:, StorageFormat = (?P<storage>-?\w+))?, Shape = \[(?P<shape>[^\]]*)\]"
        ),
        "attributes": r"Attr: (?P<attributes>.*)",
        "line_limit": 1024,
        "summary_prefix": "[INFO] ASCENDCL",
        "conversions": ["TransData", "Cast", "Transpose", "TransposeD", "Identity"],
        "skipped_folders": "device-.*",
        "folder": "~/ascend/log",
        "settings": ["ASCEND_GLOBAL_LOG_LEVEL=1", "ASCEND_GLOBAL_EVENT_ENABLE=1", "ASCEND_HOST_LOG_FILE_NUM=1000"],
        # the same forms, as a simulated device writes them
        "written_when": ["ASCEND_SLOG_PRINT_TO_STDOUT=1", "ASCEND_GLOBAL_LOG_LEVEL=[01]"],
        "operator_text": (
            "[INFO] ASCENDCL({process},python):{time} [simulated]{thread} aclopCompileAndExecute: "
            "aclopCompile::aclOp = OpType: {type}, {tensors}"
        ),
        "tensor_text": (
            "{side}putDesc[{number}]: [TensorDesc] DataType = {dtype}, Format = {format}, StorageFormat = {format}, "
            "Shape = [{shape}], StorageShape = [{shape}], shapeRange = [], memtype = 0, isConst = 0"
        ),
        "compile_text": (
            "[INFO] ASCENDCL({process},python):{time} [simulated]{thread} CompileOp: To compile op: {type}, "
            "compileFlag is 0"
        ),
    },
    # acl_base.h, aclDataType and aclFormat
    dtypes={
        "-1": "undefined", "0": "float32", "1": "float16", "2": "int8", "3": "int32", "4": "uint8", "6": "int16",
        "7": "uint16", "8": "uint32", "9": "int64", "10": "uint64", "11": "float64", "12": "bool", "13": "string",
        "16": "complex64", "17": "complex128", "27": "bfloat16", "29": "int4", "30": "uint1", "33": "complex32",
        "34": "hifloat8", "35": "float8_e5m2", "36": "float8_e4m3fn", "37": "float8_e8m0",
    },
    formats={
        "-1": "undefined", "0": "NCHW", "1": "NHWC", "2": "ND", "3": "NC1HWC0", "4": "FRACTAL_Z", "12": "NC1HWC0_C04",
        "16": "HWCN", "27": "NDHWC", "29": "FRACTAL_NZ", "30": "NCDHW", "32": "NDC1HWC0", "33": "FRACTAL_Z_3D",
        "35": "NC", "47": "NCL",
    },
    sources=(
        {"name": "CANN, sources of ACL", "version": "", "path": "acl_op.cpp, tensor_desc_internal.cpp, op_compiler.cpp, op_model_manager.cpp"},
        {"name": "Ascend PyTorch guide", "version": "", "path": "OP_INFO: get_ascend_op_info.py, first steps after warm-up"},
        {"name": "CANN documentation", "version": "9.1", "path": "environment variables: ASCEND_HOST_LOG_FILE_NUM"},
    ),
)  # fmt: skip

HOST_LOGS = {"ascend": _ACL}
