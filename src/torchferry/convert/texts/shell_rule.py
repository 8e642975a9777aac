"""The rule under which shell commands are reported, wherever they stand."""

from __future__ import annotations

from torchferry.convert.rule import Rule, register
from torchferry.text import Text

RULE = register(
    Rule(
        id="TF810",
        name="shell",
        summary=Text(
            "shell scripts: variables, options of programs, launchers and tools become the target's",
            "Shell 脚本：变量、程序选项、启动器和工具换成目标设备的",
        ),
        triggers=(),
    )
)
