"""Error rules of the adapters of Cambricon, Moore Threads, Tecorigin and Intel."""

from __future__ import annotations

from vendor_data.error_rule import Rule

INTEL_SOURCE = "pytorch/pytorch, c10/xpu and torch/xpu; oneCCL"


def fork(device: str, source: str = "") -> Rule:
    """All adapters refuse to be used after a fork, in PyTorch's words."""
    return Rule(
        "fork",
        f"Cannot re-initialize {device} in forked subprocess",
        "multiprocessing",
        "a process was forked after the device had been used",
        "使用设备之后又 fork 了子进程",
        "multiprocessing.set_start_method('spawn'); a DataLoader's workers must not touch device tensors",
        "multiprocessing.set_start_method('spawn')；DataLoader 的 worker 不得使用设备张量",
        source,
    )


def out_of_memory(regex: str, variable: str, source: str = "") -> Rule:
    """The device's memory is exhausted, in PyTorch's words."""
    return Rule(
        "oom",
        regex,
        "oom",
        "device memory is exhausted",
        "设备内存不足",
        f"smaller batch, activation checkpointing, mixed precision; {variable} against fragmentation; look for other processes",
        f"减小 batch、使用激活重计算或混合精度；用 {variable} 减少碎片；检查其他进程",
        source,
    )


MOORE_THREADS = (
    Rule(
        "mccl",
        "MCCL error in: ",
        "distributed",
        "a collective failed",
        "集合通信失败",
        "check all ranks and the network; MCCL_DEBUG=INFO says more",
        "检查所有 rank 与网络；MCCL_DEBUG=INFO 可得到更多信息",
    ),
    Rule(
        "dtype",
        r"Dtype of (?P<arg>[\w ]+) tensor of (?P<op>\w+) only support",
        "dtype",
        "{op} does not take the dtype of its {arg} tensor",
        "{op} 不支持其 {arg} 张量的 dtype",
        "cast to float32, float16 or bfloat16",
        "转换为 float32、float16 或 bfloat16",
    ),
    Rule(
        "libraries",
        r"lib(?:mudnn|musa\w*)\.so[^:]*: cannot open shared object|[Cc]annot find .*mudnn\.so",
        "install",
        "MUSA's libraries are not on the library path",
        "MUSA 库不在库路径中",
        "export LD_LIBRARY_PATH=/usr/local/musa/lib:$LD_LIBRARY_PATH",
        "export LD_LIBRARY_PATH=/usr/local/musa/lib:$LD_LIBRARY_PATH",
        facts=(r"lib(mudnn|musa\w*)\.so.*cannot open shared object|mudnn\.so",),
    ),
    Rule(
        "container",
        r"libsrv_um_MUSA\.so: (cannot open shared object file|file too short)",
        "install",
        "the container's runtime is not set up for the device",
        "容器运行时未配置该设备",
        "install mt-container-toolkit; docker run --env MTHREADS_VISIBLE_DEVICES=all",
        "安装 mt-container-toolkit；docker run --env MTHREADS_VISIBLE_DEVICES=all",
    ),
    Rule(
        "torch-version",
        r"torch version (must|should) (not be less than|be) v?2\.7\.1",
        "install",
        "torch and torch_musa do not belong together",
        "torch 与 torch_musa 版本不匹配",
        "install the torch that the message names",
        "安装信息中所要求的 torch 版本",
    ),
    Rule(
        "symbol",
        r"undefined symbol: .*torch_musa|libmusa_kernels\.so: undefined symbol",
        "install",
        "a ported operator lacks a symbol",
        "移植的算子缺少符号",
        "rebuild torch_musa with the sources of that operator; see the vendor's FAQ",
        "使用包含该算子的源码重新编译 torch_musa；参见厂商 FAQ",
    ),
    Rule(
        "mudnn",
        r"(?P<fn>\w{1,80}) MUDNN failed in: ",
        "kernel",
        "the muDNN kernel of {fn} failed",
        "{fn} 的 muDNN kernel 失败",
        "check dtype and shape; MUDNN_LOG_LEVEL says more",
        "检查 dtype 与 shape；MUDNN_LOG_LEVEL 可得到更多信息",
        facts=(r"(?P<fn>\w+) MUDNN failed in: ",),
    ),
    fork("MUSA"),
    out_of_memory("MUSA out of memory", "PYTORCH_MUSA_ALLOC_CONF"),
    Rule(
        "fused-adam",
        r"torch\.optim\.Adam(W)?\(fused=True\) is not supported",
        "optimizer",
        "fused=True of torch.optim has no MUSA kernel",
        "torch.optim 的 fused=True 没有 MUSA kernel",
        "torch_musa.optim.FusedAdam or FusedAdamW",
        "使用 torch_musa.optim.FusedAdam 或 FusedAdamW",
    ),
    Rule(
        "runtime",
        "MUSA error: |MUSA warning: ",
        "runtime",
        "an error of the runtime; the operator that caused it may have been one before",
        "运行时错误；引起错误的可能是之前的算子",
        "run with MUSA_LAUNCH_BLOCKING=1",
        "设置 MUSA_LAUNCH_BLOCKING=1 运行",
        rank=2,
    ),
)

TECORIGIN = (
    Rule(
        "script",
        r"assert isinstance\(scriptmod, torch\.jit\.ScriptModule\)|is_jit_enabled",
        "compile",
        "torch.jit.script does nothing on this device",
        "该设备上 torch.jit.script 不起作用",
        "turn scripting off (e3nn: jit_script_fx=False)",
        "关闭脚本化（e3nn：jit_script_fx=False）",
    ),
    Rule(
        "card-lost",
        r"DEVICE_LOST|HEARTBEAT_ERROR|SPE-Util\s*\|?\s*N/A",
        "hardware",
        "the card is lost (health in teco-smi)",
        "卡已失联（见 teco-smi 的健康状态）",
        "use another card, and report it to the vendor",
        "更换其他卡，并联系厂商",
    ),
    Rule(
        "kernel-fault",
        r"SDAA_ERROR_\w+",
        "kernel",
        "a kernel failed on the device; the process ends without a Python traceback",
        "kernel 在设备上出错；进程终止且没有 Python 调用栈",
        "SDAA_LAUNCH_BLOCKING=1 and TORCH_SDAA_LOG_LEVEL=debug find the operator; try another SPA, one job per process",
        "设置 SDAA_LAUNCH_BLOCKING=1 与 TORCH_SDAA_LOG_LEVEL=debug 找到算子；更换 SPA，每个进程一个任务",
        facts=(r"SDAA_ERROR_INVALID_ADDRESS_SPACE|SDAA_ERROR_DMA_RMA_ACE_UNFINISH|SDAA_ERROR_\w+",),
    ),
    Rule(
        "oom",
        r"sdaa out of memory\. Tried to allocate",
        "oom",
        "the memory of an SPA (about 15 GB) is exhausted, or shared with another process",
        "SPA 内存（约 15 GB）不足，或被其他进程占用",
        "one process per SPA, a smaller batch; teco-smi shows the others",
        "每个 SPA 一个进程，减小 batch；用 teco-smi 查看其他进程",
    ),
    Rule(
        "paddle-kernel",
        r"ElementwisePowRawKernel|\(InvalidArgument\).*backends/sdaa/kernels",
        "paddle",
        "Paddle: a kernel refuses shapes or attributes",
        "Paddle：kernel 拒绝了 shape 或属性",
        "broadcast by hand, or CUSTOM_DEVICE_BLACK_LIST=<op>,<op>_grad",
        "手动广播，或设置 CUSTOM_DEVICE_BLACK_LIST=<op>,<op>_grad",
    ),
    Rule(
        "graph-capture",
        r"sdaaErrorStreamCapture(Unsupported|Invalidated)",
        "unsupported_api",
        "graph capture is not available",
        "不支持图捕获",
        "run eagerly",
        "以 eager 方式运行",
    ),
    Rule(
        "black-list",
        r"CUSTOM_DEVICE_BLACK_LIST",
        "info",
        "a Paddle operator is forced to the CPU",
        "Paddle 算子被强制在 CPU 上执行",
        "nothing: this is what the variable asks for",
        "无需处理：该变量即为此用途",
        rank=2,
        effect="notice",
    ),
    Rule(
        "driver-version",
        r"driver api .* driver version",
        "info",
        "driver and runtime are of different versions",
        "驱动与运行时版本不同",
        "reports say that it is harmless; align the versions when there is a chance",
        "据反馈无害；有机会时统一版本",
        rank=2,
        effect="notice",
    ),
)

INTEL = (
    out_of_memory(
        r"XPU out of memory|UR_RESULT_ERROR_OUT_OF_(?:DEVICE_MEMORY|RESOURCES)",
        "PYTORCH_ALLOC_CONF",
        INTEL_SOURCE,
    ),
    fork("XPU", INTEL_SOURCE),
    Rule(
        "device-lost",
        r"UR_RESULT_ERROR_DEVICE_LOST",
        "hardware",
        "the device was reset, mostly because a kernel ran too long or crashed",
        "设备被重置，通常因 kernel 运行过久或崩溃",
        "make the shapes smaller to find the kernel; look in dmesg for i915 or xe; update the driver",
        "减小 shape 以定位 kernel；在 dmesg 中查看 i915 或 xe；升级驱动",
        INTEL_SOURCE,
    ),
    Rule(
        "no-device",
        r"No XPU devices are available|PyTorch was linked against .*no XPU devices|Torch not compiled with XPU enabled",
        "device",
        "no XPU device is visible, or this PyTorch was built without XPU",
        "没有可见的 XPU 设备，或此 PyTorch 不支持 XPU",
        "install the GPU driver (level-zero) and the XPU build of PyTorch; join the groups render and video; check ZE_AFFINITY_MASK",
        "安装 GPU 驱动（level-zero）与 XPU 版 PyTorch；加入 render 与 video 组；检查 ZE_AFFINITY_MASK",
        INTEL_SOURCE,
    ),
)
