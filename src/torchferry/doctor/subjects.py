"""How subjects that are no names are called in Chinese; variables, files and packages are called what they are."""

from __future__ import annotations

from torchferry.text import Language

_CHINESE = {
    "devices": "设备",
    "control files": "控制文件",
    "firmware": "固件",
    "libraries": "库",
    "two toolkits": "两个工具包",
    "Python packages": "Python 软件包",
    "processes": "进程",
    "host name": "主机名",
    "port": "端口",
    "ports": "通信端口",
    "work folder": "工作目录",
    "home": "主目录",
    "temporary files": "临时目录",
    "trial": "试运行",
    "emulated device": "仿真设备",
    "C++ compiler": "C++ 编译器",
    "CPU governor": "CPU 调速器",
    "BIOS Power Policy": "BIOS 电源策略",
    "CPU instructions": "CPU 指令集",
    "processors": "处理器",
    "loader workers": "数据加载进程",
    "memory": "内存",
    "transparent huge pages": "透明大页",
    "debug flags": "调试变量",
}
_ENDINGS = {" operators": " 算子包", " driver": " 驱动"}


def called(subject: str, language: Language) -> str:
    """The subject for readers of a language; programs are told the English one."""
    if language != "zh":
        return subject
    for ending, chinese in _ENDINGS.items():
        if subject.endswith(ending):
            return subject.removesuffix(ending) + chinese
    return _CHINESE.get(subject, subject)
