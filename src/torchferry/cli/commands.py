"""The commands of `ferry`, by stage of a migration: the module of each, and what it does. Imports nothing."""

from __future__ import annotations

# As (English, Chinese): `torchferry.text` takes longer to import than all that `ferry --help` does.
Sentence = tuple[str, str]

STAGES: dict[Sentence, dict[str, tuple[str, Sentence]]] = {
    ("Before you migrate", "迁移之前"): {
        "doctor": (
            "doctor",
            (
                "Check whether this machine can use a device, and what slows it down",
                "检查本机能否使用某种设备，以及哪些因素拖慢速度",
            ),
        ),
        "scan": (
            "scan",
            (
                "List what must change in a project, what blocks it and what is automatic",
                "列出项目中必须修改之处、阻塞项和可自动完成的部分",
            ),
        ),
        "ops": (
            "ops",
            (
                "List the operators of a program and check which ones a device supports",
                "列出程序使用的算子，并检查设备支持哪些",
            ),
        ),
        "case": (
            "case",
            (
                "Write and run a test of one operator: device against CPU",
                "编写并运行单个算子的测试：设备与 CPU 对比",
            ),
        ),
    },
    ("Migrate and verify", "迁移与验证"): {
        "convert": (
            "convert",
            (
                "Convert a project for another device, into a copy with reports",
                "将项目转换到另一种设备，写入带报告的副本",
            ),
        ),
        "run": (
            "run",
            (
                "Run an unchanged CUDA program on a real, emulated or simulated device",
                "在真实、仿真或模拟设备上运行未修改的 CUDA 程序",
            ),
        ),
        "emulate": (
            "emulate",
            (
                "Set up a vendor's plugin so that it runs without the hardware",
                "安装厂商插件，使其无需硬件即可运行",
            ),
        ),
        "migrate": (
            "migrate",
            (
                "Migrate a program step by step: check, convert, run, verify, report",
                "逐步迁移一个程序：检查、转换、运行、验证、报告",
            ),
        ),
        "prove": (
            "prove",
            (
                "Verify that the original and the migrated program compute the same",
                "验证原程序与迁移后的程序计算结果一致",
            ),
        ),
    },
    ("When a run crashes", "程序崩溃时"): {
        "explain": (
            "explain",
            (
                "Explain the errors in a log: the first cause, why, what to do",
                "解释日志中的错误：首要原因、成因和处理方法",
            ),
        ),
        "bundle": (
            "bundle",
            (
                "Pack an operator problem for a vendor's issue tracker, without private data",
                "将算子问题打包提交给厂商，不含隐私数据",
            ),
        ),
    },
    ("When the loss differs", "损失不一致时"): {
        "record": (
            "record",
            ("Record the inputs and outputs of every operator", "记录每个算子的输入和输出"),
        ),
        "compare": (
            "compare",
            (
                "Compare two recordings and find the first wrong operator",
                "比较两份记录，找出第一个出错的算子",
            ),
        ),
        "replay": (
            "replay",
            (
                "Replay the operators of a recording one by one on another device",
                "在另一种设备上逐个重放记录中的算子",
            ),
        ),
        "overflow": (
            "overflow",
            ("Find the first operator that produces infinities or NaN", "找出第一个产生无穷大或 NaN 的算子"),
        ),
        "watch": (
            "watch",
            (
                "Watch a long training: loss, gradients and activations as curves",
                "监视长时间训练：损失、梯度和激活值的曲线",
            ),
        ),
    },
    ("When training is slow", "训练缓慢时"): {
        "profile": (
            "profile",
            ("Profile a few steps of an unchanged program", "对未修改的程序做几步性能采集"),
        ),
        "analyze": (
            "analyze",
            ("Analyze a profile of any vendor and name the bottleneck", "分析任意厂商的性能数据，指出瓶颈"),
        ),
        "oplog": (
            "oplog",
            (
                "Read a runtime's host logs: operators, shapes, recompilations",
                "读取运行时的主机日志：算子、形状和重复编译",
            ),
        ),
    },
    ("After training", "训练之后"): {
        "checkpoint": (
            "checkpoint",
            (
                "Inspect a checkpoint without running it, or write a repaired copy",
                "在不执行代码的情况下查看检查点，或写出修复后的副本",
            ),
        ),
        "export": (
            "export",
            (
                "Export a checkpoint to ONNX, verify it, and convert it for a device",
                "将检查点导出为 ONNX，验证并转换为设备模型",
            ),
        ),
        "zoo": (
            "zoo",
            (
                "Prepare a migrated model for a vendor's model zoo, or check one",
                "为厂商的模型库准备迁移后的模型，或检查其完整性",
            ),
        ),
    },
    ("Reference", "查询"): {
        "vendors": (
            "vendors",
            (
                "List the supported vendors, or show everything about one",
                "列出支持的厂商，或显示某一厂商的全部信息",
            ),
        ),
        "rules": ("rules", ("List the conversion rules, or explain one", "列出转换规则，或解释其中一条")),
        "report": (
            "report",
            (
                "Make one page of a migration folder, or convert findings.json to any format",
                "将迁移文件夹汇总为一个页面，或将 findings.json 转换为其他格式",
            ),
        ),
        "completion": (
            "completion",
            ("Print the completion script for bash, zsh or fish", "输出 bash、zsh 或 fish 的补全脚本"),
        ),
    },
}
COMMANDS = {name: command for commands in STAGES.values() for name, command in commands.items()}

EXIT_CODES: dict[str, Sentence] = {
    "0": ("Success: nothing wrong was found", "成功：未发现问题"),
    "1": (
        "A check failed: the result is there, and it is negative (work to do, a wrong operator, a failed proof)",
        "检查未通过：已得到结果，且结果为否定（有待处理项、算子出错、验证失败）",
    ),
    "2": ("Wrong usage or wrong input; nothing was written", "用法或输入有误；未写入任何内容"),
    "3": (
        "Incomplete: some files, logs or steps could not be processed, and nothing else was found. 1 comes before 3",
        "不完整：部分文件、日志或步未能处理，其余未发现问题。1 优先于 3",
    ),
    "130": ("Interrupted with Ctrl-C (143: with SIGTERM)", "被 Ctrl-C 中断（143：被 SIGTERM 终止）"),
}
OF_PROGRAMS: Sentence = (
    "`ferry run` and `ferry watch` end with the exit code of the program",
    "`ferry run` 和 `ferry watch` 以程序自身的退出码结束",
)
