"""Variables and options that cost or gain speed, by vendor, each with its source."""

from __future__ import annotations

from vendor_data.tuning import Tuning, blocking, blocking_wait, no_caching
from vendor_data.tuning_ascend import ASCEND

_MLU = "Cambricon/torch_mlu r2.4, torch_mlu"
_CAMBRICON = (
    no_caching("PYTORCH_NO_MLU_MEMORY_CACHING", _MLU),
    Tuning(
        "PYTORCH_MLU_ALLOC_CONF",
        "options of the caching allocator, as PYTORCH_CUDA_ALLOC_CONF",
        "缓存分配器的选项，同 PYTORCH_CUDA_ALLOC_CONF",
        _MLU,
    ),
    Tuning(
        "TORCH_ALLOW_TF32_CNMATMUL_OVERRIDE",
        "1 lets float32 matrix products use TF32 (MLU500 series)",
        "为 1 时 float32 矩阵乘使用 TF32（MLU500 系列）",
        _MLU,
        "products are less precise with 1",
        "为 1 时乘积精度较低",
        recommended="1",
        improvable="0?",
        default="",
    ),
    Tuning(
        "CNNL_GEN_CASE",
        "writes a test case of every kernel call into files",
        "把每次内核调用写成测试用例文件",
        _MLU,
        "files for every call",
        "每次调用都写文件",
        slow="(?!0$).+",
        default="",
    ),
    Tuning(
        "ENABLE_MLU_OVERFLOW_CHECK",
        "looks for overflows",
        "检查溢出",
        _MLU,
        "what it costs is not known",
        "代价未知",
        improvable="(?!0$).+",
        default="",
    ),
    Tuning(
        "TORCH_MLU_SQRT_HIGH_PRECISION",
        "a more precise square root",
        "更精确的平方根",
        _MLU,
        "what it costs is not known",
        "代价未知",
        improvable="(?!0$).+",
        default="",
    ),
    Tuning(
        "TORCH_MLU_APEX_ADAM_HIGH_PRECISION",
        "a more precise fused Adam",
        "更精确的融合 Adam",
        _MLU,
        "what it costs is not known",
        "代价未知",
        improvable="(?!0$).+",
        default="",
    ),
    Tuning(
        "TORCH_MIN_CNLOG_LEVEL",
        "0 logs the details of failed kernels",
        "为 0 时记录失败内核的细节",
        _MLU,
        "what it costs is not known",
        "代价未知",
        improvable="0",
        default="",
    ),
    blocking_wait("TORCH_CNCL_BLOCKING_WAIT", _MLU),
)

_SDAA = "Tecorigin/modelzoo, PyTorch/doc and scripts"
_TECORIGIN = (
    blocking("SDAA_LAUNCH_BLOCKING", _SDAA, "0"),
    blocking("TECO_LAUNCH_BLOCKING", _SDAA, "0"),
    Tuning(
        "TORCH_SDAA_LOG_LEVEL",
        "what the adapter logs",
        "适配器的日志级别",
        _SDAA,
        "debug writes lines for every operator",
        "debug 为每个算子写日志",
        slow="(?i:debug)",
        default="",
    ),
    Tuning(
        "TECO_ENABLE_DUMP_INFO",
        "writes what operators were given, as seen in the vendor's scripts",
        "写出算子的输入（见于厂商脚本）",
        _SDAA,
        "what it costs is not known",
        "代价未知",
        improvable="(?!0$).+",
        default="",
    ),
    Tuning(
        "TORCH_SDAA_FALLBACK_OPS",
        "operators that run on the CPU instead",
        "强制在 CPU 上运行的算子",
        _SDAA,
        "each call copies its tensors to the host and back",
        "每次调用都要在主机与设备间拷贝张量",
        slow=".+",
        default="",
    ),
    Tuning(
        "TORCH_SDAA_RUNTIME_AUTOFALLBACK",
        "1 runs operators that fail or are missing on the CPU",
        "为 1 时失败或缺失的算子在 CPU 上运行",
        _SDAA,
        "slow operators do not show: `ferry ops --to tecorigin` lists them",
        "慢的算子不会显露：用 `ferry ops --to tecorigin` 列出",
    ),
    Tuning(
        "TORCH_SDAA_CONV_USE_FP32",
        "no float16 inside convolutions, forward",
        "卷积前向内部不使用 float16",
        _SDAA,
        "what it costs is not known",
        "代价未知",
        improvable="(?!0$).+",
        default="",
    ),
    Tuning(
        "TORCH_SDAA_CONV2D_BACKWARD_USE_FP32",
        "no float16 inside convolutions, backward",
        "卷积反向内部不使用 float16",
        _SDAA,
        "what it costs is not known",
        "代价未知",
        improvable="(?!0$).+",
        default="",
    ),
    blocking_wait("TORCH_TCCL_BLOCKING_WAIT", _SDAA),
)

_MUSA = "MooreThreads/torch_musa, README.md and docs"
_MOORETHREADS = (
    blocking("MUSA_LAUNCH_BLOCKING", _MUSA, "0"),
    no_caching("PYTORCH_NO_MUSA_MEMORY_CACHING", _MUSA),
    Tuning(
        "PYTORCH_MUSA_ALLOC_CONF",
        "options of the caching allocator; cpu:unified selects the unified allocator",
        "缓存分配器的选项；cpu:unified 选择统一内存分配器",
        _MUSA,
    ),
    Tuning(
        "TORCH_MUSA_OP_DEBUG",
        "logs every operator",
        "记录每个算子",
        _MUSA,
        "lines for every operator",
        "每个算子都写日志",
        slow="(?!0$|(?i:off|false)$).+",
        default="",
    ),
    Tuning(
        "MUDNN_LOG_LEVEL",
        "what the library of kernels logs",
        "内核库的日志级别",
        _MUSA,
        "lines for every kernel at the talkative levels; which they are is not known",
        "较详细的级别为每个内核写日志；具体取值未知",
    ),
    Tuning(
        "MCCL_DEBUG",
        "what collectives log",
        "集合通信的日志级别",
        _MUSA,
        "INFO and TRACE write lines for every collective",
        "INFO 与 TRACE 为每次集合通信写日志",
        slow="(?i:info|trace)",
        default="",
    ),
)

_SYCL = "dpctl documentation, environment variables"
_INTEL = (
    Tuning(
        "SYCL_CACHE_PERSISTENT",
        "1 keeps kernels that were compiled at run time on the disk",
        "为 1 时把运行时编译的内核保存到磁盘",
        _SYCL,
        "without it they are compiled again at each start; it takes disk space",
        "不设置时每次启动都重新编译；占用磁盘空间",
        recommended="1",
        improvable="0",
        default="0",
    ),
    Tuning(
        "SYCL_PI_TRACE",
        "prints calls of the runtime",
        "打印运行时的调用",
        _SYCL,
        "lines for every call",
        "每次调用都打印",
        slow="(?!0$).+",
        default="",
    ),
)

TUNING: dict[str, tuple[Tuning, ...]] = {
    "ascend": ASCEND,
    "cambricon": _CAMBRICON,
    "tecorigin": _TECORIGIN,
    "moorethreads": _MOORETHREADS,
    "intel": _INTEL,
}
