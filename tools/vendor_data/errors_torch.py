"""Error rules of torch.compile, of weights and model hubs, of NumPy's versions, and of shapes, types and gradients."""

from __future__ import annotations

from vendor_data.error_rule import PYTORCH, Rule

HUB = "huggingface_hub, transformers and safetensors, wording of their exceptions"
NUMPY = "NumPy, wording of its messages"

APEX = "NVIDIA/apex, wording of its messages"
_NO_LOSS_SCALE = (
    "numeric",
    "the loss scale fell to zero: every step overflowed, because the loss or the gradients are NaN or infinite",
    "损失缩放系数降为 0：每一步都溢出，因为损失或梯度为 NaN 或无穷",
    "`ferry overflow` finds the first operator that makes them; lower the learning rate, clip gradients, leave that operator in "
    "float32, bfloat16 instead of float16",
    "`ferry overflow` 可找到第一个产生它们的算子；降低学习率、裁剪梯度、让该算子保持 float32，用 bfloat16 代替 float16",
)

TORCH = (
    Rule(
        "wrapped",
        r"Caught \w+ in (?:DataLoader worker|replica|pin memory thread)|^(?:\w+\.)*(?:Base)?ExceptionGroup: |"
        r"(?:RayTaskError|_?RemoteTraceback)\b|-- Process \d+ terminated with the following error|Worker failed with error",
        "process",
        "an exception of another process or thread was passed on; the one that is printed with it is the cause",
        "转发了其他进程或线程的异常；与之一起打印的异常才是原因",
        "read the traceback printed with it; num_workers=0 brings a DataLoader's errors into the main process",
        "查看与之一起打印的调用栈；num_workers=0 可使 DataLoader 的错误出现在主进程",
        PYTORCH,
        2,
        "consequence",
    ),
    Rule(
        "plugin-missing",
        r"(?:Error: |^)No module named '(?P<name>torch_npu|torch_mlu|torch_sdaa|torch_musa|intel_extension_for_pytorch)'",
        "install",
        "the vendor's plugin {name} is not installed in this Python",
        "此 Python 未安装厂商插件 {name}",
        "install the build that belongs to this torch version (`ferry doctor --to VENDOR` says which); without the device, "
        "`ferry run --sim` simulates it",
        "安装与该 torch 版本对应的插件（`ferry doctor --to VENDOR` 给出版本）；没有设备时可用 `ferry run --sim` 模拟",
        PYTORCH,
    ),
    Rule(
        "backend-autoload",
        r"Failed to load the backend extension: (?P<name>\w+)",
        "install",
        "PyTorch loads installed plugins by itself, and {name} could not be loaded: its libraries are missing, or it is for another torch",
        "PyTorch 会自动加载已安装的插件，而 {name} 加载失败：缺少依赖库，或针对其他 torch 版本",
        "look at the error above it; source the vendor's environment script; TORCH_DEVICE_BACKEND_AUTOLOAD=0 switches the "
        "loading off; on a machine without the device take the plugin out of the environment: `ferry emulate` can run it beside it",
        "查看其上方的错误；执行厂商的环境脚本；TORCH_DEVICE_BACKEND_AUTOLOAD=0 可关闭自动加载；没有设备的机器请从环境中移除该插件："
        "`ferry emulate` 可在环境之外运行它",
        PYTORCH,
        2,
    ),
    Rule(
        "triton-missing",
        r"Cannot find a working triton installation|TritonMissing|cannot import name 'triton_key'|\b0 active drivers\b|"
        r"Could not find an active GPU backend",
        "compile",
        "torch.compile needs a Triton that fits this torch and device, and there is none",
        "torch.compile 需要与 torch 及设备匹配的 Triton，而此处没有",
        "install the vendor's Triton, or run without torch.compile (TORCHDYNAMO_DISABLE=1 switches it off)",
        "安装厂商的 Triton，或不使用 torch.compile（TORCHDYNAMO_DISABLE=1 可关闭）",
        PYTORCH,
    ),
    Rule(
        "compiler-missing",
        r"InvalidCxxCompiler|No working C\+\+ compiler found|CppCompileError|C\+\+ compile error",
        "compile",
        "torch.compile or an extension needs a C++ compiler, which is missing, too old, or failed",
        "torch.compile 或扩展需要 C++ 编译器，而其缺失、过旧或编译失败",
        "install g++ 9 or newer (CXX names another); read the compiler's own `error:` line",
        "安装 g++ 9 或更新版本（CXX 可指定）；查看编译器自己的 `error:` 行",
        PYTORCH,
    ),
    Rule(
        "compile-failed",
        r"BackendCompilerFailed|InductorError|torch\._dynamo\.exc\.(?P<name>\w+)|torch\._inductor\.exc\.\w+|LoweringException",
        "compile",
        "torch.compile could not compile a part of the model",
        "torch.compile 无法编译模型的某一部分",
        "run without it to see whether the model is sound (TORCHDYNAMO_DISABLE=1); then torch.compile(dynamic=False), or "
        "torch._dynamo.disable on that function",
        "先关闭编译（TORCHDYNAMO_DISABLE=1）确认模型本身正确；再尝试 torch.compile(dynamic=False)，或对该函数使用 torch._dynamo.disable",
        PYTORCH,
        3,
    ),
    Rule(
        "weights-header",
        r"invalid load key, '(?P<key>.{1,4})'|Error while deserializing header|not a ZIP archive|Unable to load weights from pytorch checkpoint",
        "checkpoint",
        "this is no file of weights: a Git LFS pointer, a web page, or a download that was cut off",
        "该文件不是权重文件：可能是 Git LFS 指针、网页，或未下载完整",
        "look at its size and beginning (head -c 100); `git lfs pull`, or download it again",
        "查看其大小与开头（head -c 100）；执行 `git lfs pull` 或重新下载",
        HUB,
    ),
    Rule(
        "hub-refused",
        r"GatedRepoError|RepositoryNotFoundError|401 Client Error|403 Client Error",
        "network",
        "the model hub refuses: the name is wrong, or the model asks for a licence and a token",
        "模型仓库拒绝访问：名称错误，或需要接受许可并提供 token",
        "check the name; accept the licence on the model's page; log in with a token (HF_TOKEN)",
        "检查名称；在模型页面接受许可；使用 token 登录（HF_TOKEN）",
        HUB,
        2,
    ),
    Rule(
        "hub-path",
        r"is not a local folder and is not a valid model identifier|does not appear to have a file named|"
        r"Can't load (?:tokenizer|the configuration|the model) (?:for|of) '|Repo id must be in the form",
        "checkpoint",
        "the path of a model is wrong, or its folder lacks files",
        "模型路径错误，或其目录缺少文件",
        "give the folder that holds config.json and the weights; a relative path counts from where the program was started",
        "给出包含 config.json 与权重的目录；相对路径以启动目录为准",
        HUB,
        2,
    ),
    Rule(
        "numpy-abi",
        r"numpy\.\w+ size changed, may indicate binary incompatibility|numpy\.core\.multiarray failed to import|Numpy is not available|"
        r"Could not infer dtype of numpy\.",
        "install",
        "a compiled package was built for another generation of NumPy than the one installed",
        "某个编译包针对的 NumPy 大版本与已安装的不同",
        'pip install "numpy<2", or a newer build of the package that the traceback names',
        '执行 pip install "numpy<2"，或安装调用栈所示包的较新版本',
        NUMPY,
    ),
    Rule(
        "numpy-abi-warning",
        r"A module that was compiled using NumPy 1\.x cannot be run in|_ARRAY_API not found",
        "install",
        "a compiled package was built for NumPy 1 and NumPy 2 is installed: tensors may not convert to arrays",
        "某个编译包针对 NumPy 1 构建，而已安装 NumPy 2：张量与数组可能无法转换",
        'pip install "numpy<2", or a newer build of that package',
        '执行 pip install "numpy<2"，或安装该包的较新版本',
        NUMPY,
        1,
        "notice",
    ),
    Rule(
        "numpy-removed",
        r"module 'numpy' has no attribute '(?P<name>\w+)'|`np\.(?P<alias>\w+)` was (?:removed|a deprecated alias)",
        "install",
        "the program uses a name that this NumPy no longer has",
        "程序使用了当前 NumPy 已移除的名称",
        'use the plain Python or lower-case name (np.float -> float, np.NaN -> np.nan), or pip install "numpy<1.24"',
        '改用 Python 或小写名称（np.float -> float，np.NaN -> np.nan），或 pip install "numpy<1.24"',
        NUMPY,
    ),
    Rule(
        "shapes",
        r"mat1 and mat2 shapes cannot be multiplied|The size of tensor a \(\d+\) must match the size of tensor b|"
        r"shape '\[[^\]]*\]' is invalid for input of size|Given groups=\d+, weight of size|[Ss]izes of tensors must match except|"
        r"stack expects each tensor to be equal size|Expected input batch_size",
        "shape",
        "the shapes of two tensors do not fit together",
        "两个张量的 shape 不匹配",
        "print the shapes at the line of the traceback; frequent: another image or vocabulary size, a last batch that is smaller "
        "(drop_last=True), a missing flatten",
        "在调用栈所示位置打印 shape；常见原因：图像或词表大小不同、最后一个批次较小（drop_last=True）、缺少 flatten",
        PYTORCH,
        3,
    ),
    Rule(
        "dtype-mismatch",
        r"expected scalar type (?P<wanted>\w+) but found (?P<found>\w+)|must have the same dtype|have the same dtype, but got|"
        r"Found dtype (?P<other>\w+) but expected",
        "dtype",
        "two tensors of different types meet",
        "两个张量的 dtype 不一致",
        "run the step under autocast, or cast one of them (.to(other.dtype)); a model in half precision needs its inputs so, too",
        "在 autocast 下运行该步骤，或转换其中之一（.to(other.dtype)）；半精度模型的输入也须为半精度",
        PYTORCH,
        2,
    ),
    Rule(
        "no-gradient",
        r"element 0 of tensors does not require grad|Trying to backward through the graph a second time|"
        r"grad can be implicitly created only for scalar outputs",
        "autograd",
        "backward has nothing to go back through: the loss was detached, is no scalar, or its graph was used before",
        "backward 无图可用：损失已 detach、不是标量，或其计算图已被使用",
        "look for .detach(), .item(), no_grad and numpy between model and loss; loss.mean(); keep no loss over steps",
        "检查模型与损失之间的 .detach()、.item()、no_grad 与 numpy；使用 loss.mean()；不要跨步保留损失",
        PYTORCH,
        2,
    ),
    Rule(
        "nan-gradient",
        r"Function '(?P<op>\w+)' returned nan values in its|Current loss scale already at minimum|loss is (?:nan|inf), stopping|"
        r"Loss is (?:nan|inf|NaN), stopping",
        "numeric",
        "gradients or the loss are no longer numbers",
        "梯度或损失不再是有效数值",
        "`ferry overflow` finds the first operator that makes them; lower the learning rate, clip gradients, bfloat16 instead of float16",
        "`ferry overflow` 可找到第一个产生它们的算子；降低学习率、裁剪梯度，用 bfloat16 代替 float16",
        PYTORCH,
    ),
    Rule(
        "loss-scale-zero",
        r"reducing loss scale to (?:0(?:\.0+)?|\d(?:\.\d+)?e-\d\d)(?![.\d])",
        *_NO_LOSS_SCALE,
        APEX,
    ),
    Rule(
        "loss-scale-division",
        r"ZeroDivisionError: ",
        *_NO_LOSS_SCALE,
        APEX,
        frames=r"(?:^|[/\\])apex[/\\]amp[/\\]",
    ),
    Rule(
        "data-parallel",
        r"torch\.nn\.DataParallel is not (?:supported|simulated)",
        "unsupported_api",
        "torch.nn.DataParallel uses several devices from one process, which this device does not have",
        "torch.nn.DataParallel 由一个进程使用多个设备，该设备不支持",
        "on one device leave the wrapper out (make only one visible); for several: DistributedDataParallel, which `ferry convert "
        "--distributed --main SCRIPT` writes for programs that have none",
        "单设备时去掉该封装（只设置一个可见设备）；多设备时使用 DistributedDataParallel：对没有它的程序，"
        "`ferry convert --distributed --main SCRIPT` 可以改写",
        "torchferry",
    ),
    Rule(
        "torchvision-operators",
        r"operator torchvision::(?P<name>\w+) does not exist|Couldn't load custom C\+\+ ops",
        "install",
        "torchvision was built for another torch (another version, or a CUDA build beside a CPU build), so its compiled "
        "operators are not loaded",
        "torchvision 针对其他 torch 构建（版本不同，或 CUDA 版与 CPU 版混用），其编译的算子未能加载",
        "install the torchvision that belongs to this torch, from the same index: for a CPU build `pip install torchvision "
        "--index-url https://download.pytorch.org/whl/cpu`; torch's release notes say which versions belong together",
        "从同一软件源安装与此 torch 匹配的 torchvision：CPU 版使用 `pip install torchvision "
        "--index-url https://download.pytorch.org/whl/cpu`；版本对应关系见 torch 的发布说明",
        "pytorch/vision, wording of its messages",
    ),
    Rule(
        "host-memory",
        r"DefaultCPUAllocator: |Cannot allocate memory|^MemoryError\b|std::bad_alloc|Unable to allocate .{1,40} for an array",
        "memory",
        "memory of the host is exhausted",
        "主机内存不足",
        "fewer DataLoader workers and smaller prefetch; load weights with mmap=True; a larger memory limit of the container; no "
        "large lists in the dataset",
        "减少 DataLoader worker 与预取；用 mmap=True 加载权重；增大容器内存限制；数据集中避免大列表",
        PYTORCH,
        2,
    ),
    Rule(
        "rendezvous",
        r"Rendezvous(?:Timeout|Connection|Closed|State)Error|DistNetworkError|Timed out after \d+ seconds waiting for clients|"
        r"got error: (?:Connection refused|wait timeout)|failed to listen on any local network address",
        "distributed",
        "the processes of a run did not find each other at its start",
        "任务启动时各进程未能相互连接",
        "the same MASTER_ADDR, MASTER_PORT and number of nodes everywhere; the port open in the firewall; look at rank 0's log first",
        "各节点的 MASTER_ADDR、MASTER_PORT 与节点数一致；防火墙开放端口；先查看 rank 0 的日志",
        PYTORCH,
        2,
    ),
    Rule(
        "group-not-initialised",
        r"Default process group has not been initialized",
        "distributed",
        "a collective or DistributedDataParallel is used before init_process_group",
        "在 init_process_group 之前使用了集合通信或 DistributedDataParallel",
        "call torch.distributed.init_process_group first, or start the program with torchrun (`ferry run --nproc N`)",
        "先调用 torch.distributed.init_process_group，或用 torchrun 启动（`ferry run --nproc N`）",
        PYTORCH,
    ),
    Rule(
        "collectives-differ",
        r"Detected mismatch between collectives on ranks|Expected to mark a variable ready only once",
        "distributed",
        "the ranks do not take the same collectives in the same order",
        "各 rank 的集合通信及其顺序不一致",
        "look for branches on the rank around collectives and for parameters used twice; static_graph=True with re-entrant checkpointing",
        "检查集合通信附近按 rank 的分支以及被重复使用的参数；使用重入式 checkpoint 时设置 static_graph=True",
        PYTORCH,
    ),
    Rule(
        "no-file",
        r"FileNotFoundError: \[Errno 2\] No such file or directory: '?(?P<path>[^'\n]{1,200})",
        "files",
        "there is no file {path}",
        "文件不存在：{path}",
        "a relative path counts from where the program was started; in a container the folder may not be mounted",
        "相对路径以启动目录为准；容器中可能未挂载该目录",
        "Python, wording of its exceptions",
        3,
    ),
    Rule(
        "no-permission",
        r"PermissionError: \[Errno 13\] Permission denied(?:: '(?P<path>[^'\n]{1,200}))?",
        "files",
        "this user may not read or write {path}",
        "当前用户无权读写 {path}",
        "ls -l shows the owner; device files of an accelerator need its group (video, render, HwHiAiUser)",
        "用 ls -l 查看属主；加速器的设备文件需要相应的用户组（video、render、HwHiAiUser）",
        "Python, wording of its exceptions",
        3,
    ),
)
