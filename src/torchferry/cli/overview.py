"""What `ferry --help` shows: all commands by stage, and the exit codes. Imports next to nothing: it must be instant."""

from __future__ import annotations

from torchferry.cli.commands import COMMANDS, EXIT_CODES, OF_PROGRAMS, STAGES
from torchferry.cli.layout import columns, rows, wrapped

_USAGE = ("usage: ", "用法：")
_COLON = (":", "：")
_TITLES = (("General", "Exit codes"), ("通用", "退出码"))
_CARRIES = (
    "Migrate PyTorch training code written for NVIDIA GPUs to other accelerators, and verify the result.",
    "将为 NVIDIA GPU 编写的 PyTorch 训练代码迁移到其他加速卡，并验证结果。",
)
_GENERAL = (
    ("ferry COMMAND --help", ("Show the options of a command", "显示某个命令的选项")),
    ("ferry help COMMAND", ("The same", "同上")),
    ("ferry help --man DIR", ("Write man pages of all commands into DIR", "将所有命令的 man 手册写入 DIR")),
    ("ferry --lang zh COMMAND", ("Answer in Chinese (en: in English)", "使用中文输出（en：英文）")),
    ("ferry --version", ("Show the version", "显示版本")),
)


def overview(language: str, width: int = 0) -> str:
    """The whole text."""
    width, at = width or columns(), int(language == "zh")
    colon, (general, codes) = _COLON[at], _TITLES[at]
    lines = [f"{_USAGE[at]}ferry COMMAND [OPTIONS]", "", *wrapped(_CARRIES[at], width)]
    wide = max(map(len, COMMANDS)) + 4
    for stage, commands in STAGES.items():
        pairs = [(name, sentences[at]) for name, (_, sentences) in commands.items()]
        lines += ["", stage[at] + colon, *rows(pairs, width, wide)]
    lines += ["", general + colon, *rows([(left, said[at]) for left, said in _GENERAL], width, 28)]
    lines += ["", codes + colon, *rows([(code, said[at]) for code, said in EXIT_CODES.items()], width, 7)]
    return "\n".join([*lines, *(f"  {line}" for line in wrapped(OF_PROGRAMS[at], width - 2))])
