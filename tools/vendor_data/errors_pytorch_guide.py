"""Error rules of PyTorch's own messages that the FAQ of a vendor's guide explains, and those around checkpoints."""

from __future__ import annotations

from vendor_data.error_rule import GUIDE, PYTORCH, Rule

PYTORCH_GUIDE = (
    Rule(
        "pillow-build",
        r"(?:headers or library files could not be found for (?:jpeg|zlib)|RequiredDependencyException: (?:jpeg|zlib)|"
        r"[Ff]ailed building wheel for [Pp]illow|[Pp]illow==5\.\d.*(?:failed|error))",
        "install",
        "Pillow is built from source, and headers of libjpeg or zlib are missing",
        "Pillow 从源码编译，缺少 libjpeg 或 zlib 的头文件",
        "install them: `apt-get install libjpeg-dev zlib1g-dev python3-dev`, or `yum install libjpeg-turbo-devel zlib-devel "
        "python3-devel`; or take a Pillow that has a wheel for this Python",
        "安装依赖：`apt-get install libjpeg-dev zlib1g-dev python3-dev`，或 `yum install libjpeg-turbo-devel zlib-devel "
        "python3-devel`；或使用有预编译 wheel 的 Pillow 版本",
        GUIDE,
    ),
    Rule(
        "torch-c-missing",
        r"No module named 'torch\._C'",
        "install",
        "the program was started in a folder that has a source folder `torch`, which hides the installed package",
        "在含有 torch 源码目录的文件夹中启动，遮蔽了已安装的 torch",
        "start it from another folder",
        "切换到其他目录执行",
        GUIDE,
    ),
    Rule(
        "cuda-stream-sync",
        r"torch\.cuda\.(?:current_stream\([^)]*\)\.|default_stream\([^)]*\)\.)?(?:synchronize|wait_stream)\(",
        "leftover_cuda",
        "CUDA's stream synchronisation is called where the device is another",
        "在非 CUDA 设备上调用了 CUDA 的流同步",
        "use the device's own, such as torch.npu.current_stream().synchronize(); `ferry convert` rewrites it, `ferry run` "
        "redirects it",
        "使用设备自己的接口，如 torch.npu.current_stream().synchronize()；`ferry convert` 可改写，`ferry run` 可重定向",
        GUIDE,
        3,
    ),
    Rule(
        "hook-stop-iteration",
        r"next\(\(v for v in var\.values\(\) if isinstance\(v, torch\.Tensor\)\)\)",
        "autograd",
        "backward hooks of this PyTorch look for a tensor in the module's output, and the dict of losses holds none at "
        "the first level",
        "该版本 PyTorch 的反向 hook 在模块输出中查找张量，而损失字典第一层没有张量",
        "register the hook on a module that returns tensors, use register_full_backward_hook, or let module.py skip the "
        "output (try/except around that loop)",
        "将 hook 注册到返回张量的模块，使用 register_full_backward_hook，或在 module.py 的该循环外加 try/except 跳过",
        GUIDE,
    ),
    Rule(
        "state-dict-prefix",
        r"(?:Missing|Unexpected) key\(s\) in state_dict: \"(?P<prefix>module|_orig_mod)\.",
        "checkpoint",
        "the names in the checkpoint and in the model differ by `{prefix}.`, which DistributedDataParallel (module.) or "
        "torch.compile (_orig_mod.) puts before them",
        "权重与模型的参数名相差 `{prefix}.` 前缀，由 DistributedDataParallel（module.）或 torch.compile（_orig_mod.）添加",
        "strip it: `ferry checkpoint fix model.pth -o clean.pth --strip {prefix}.`, or load into model.module",
        "去掉前缀：`ferry checkpoint fix model.pth -o clean.pth --strip {prefix}.`，或加载到 model.module",
        GUIDE,
    ),
    Rule(
        "state-dict-keys",
        r"(?:Missing|Unexpected) key\(s\) in state_dict|Error\(s\) in loading state_dict",
        "checkpoint",
        "the checkpoint's names or shapes are not those of the model",
        "权重的参数名或形状与模型不一致",
        "look at both with `ferry checkpoint info`; often the weights lie deeper (checkpoint['state_dict']) or the head "
        "has another number of classes",
        "用 `ferry checkpoint info` 查看权重；常见原因是权重在 checkpoint['state_dict'] 中，或分类头的类别数不同",
        PYTORCH,
        2,
    ),
    Rule(
        "state-dict-shape",
        r"size mismatch for (?P<name>[\w.]+): copying a param",
        "checkpoint",
        "the shape of {name} in the checkpoint is not that of the model",
        "权重中 {name} 的形状与模型不一致",
        "build the model with the arguments it was trained with, or drop that key and train the layer anew",
        "使用训练时的参数构建模型，或去掉该键并重新训练该层",
        PYTORCH,
    ),
    Rule(
        "deserialize-cuda",
        r"Attempting to deserialize object on a CUDA device but torch\.cuda\.is_available\(\) is False|"
        r"Attempting to deserialize object on CUDA device \d+ but torch\.cuda\.device_count\(\) is",
        "checkpoint",
        "the checkpoint was saved on a CUDA device that is not here",
        "权重保存自此处不存在的 CUDA 设备",
        'torch.load(..., map_location="cpu"), or mend the file with `ferry checkpoint fix model.pth -o clean.pth --map cuda:cpu`',
        'torch.load(..., map_location="cpu")，或用 `ferry checkpoint fix model.pth -o clean.pth --map cuda:cpu` 修复文件',
        PYTORCH,
        facts=(
            r"Attempting to deserialize object on a CUDA device but torch\.cuda\.is_available\(\) is False",
        ),
    ),
    Rule(
        "deserialize-device",
        r"don't know how to restore data location of .*tagged with (?P<device>\S+?)\)|"
        r"Attempting to deserialize object on a (?P<other>\w+) device",
        "checkpoint",
        "the checkpoint was saved on a device whose plugin is not loaded here",
        "权重保存自某设备，而此处未加载其插件",
        'import the plugin before torch.load, or use map_location="cpu"; `ferry checkpoint fix --map` mends the file',
        '在 torch.load 之前导入插件，或使用 map_location="cpu"；`ferry checkpoint fix --map` 可修复文件',
        PYTORCH,
        2,
    ),
    Rule(
        "weights-only",
        r"Weights only load failed|WeightsUnpickler error|Unsupported (?:global|operand): GLOBAL",
        "checkpoint",
        "since 2.6 torch.load takes only tensors and plain types by default, and the file holds other classes",
        "自 2.6 起 torch.load 默认只加载张量与基本类型，而文件中含有其他类",
        "see what is inside with `ferry checkpoint info`, which runs nothing of it; weights_only=False only for files that "
        "you trust, or torch.serialization.add_safe_globals",
        "先用 `ferry checkpoint info` 查看内容（不执行其中代码）；仅对可信文件使用 weights_only=False，或使用 "
        "torch.serialization.add_safe_globals",
        PYTORCH,
    ),
    Rule(
        "checkpoint-torn",
        r"PytorchStreamReader failed|failed finding central directory|unexpected EOF, expected \d+ more bytes|Ran out of input",
        "checkpoint",
        "the checkpoint is cut off or is no checkpoint: the disk was full, or the download or the saving process ended early",
        "权重文件不完整或不是权重文件：磁盘已满，或下载、保存被中断",
        "compare its size with the original's; let only rank 0 write it, and write to another name before renaming",
        "与原文件比较大小；只由 rank 0 保存，并先写临时文件再改名",
        PYTORCH,
    ),
    Rule(
        "pickled-module",
        r"Can't get attribute '(?P<name>[\w.]+)' on <module",
        "checkpoint",
        "a whole object was pickled, and its class {name} is not where it was when it was saved",
        "保存的是整个对象，其类 {name} 已不在保存时的位置",
        "make the class importable under the old name once, then save only state_dict()",
        "先使该类可按原名称导入，之后只保存 state_dict()",
        PYTORCH,
    ),
)
