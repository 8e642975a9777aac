"""The rules under which texts are reported; apart from what looks at texts, because every run asks for them."""

from __future__ import annotations

from torchferry.convert.rule import Rule, register
from torchferry.text import Text

SHELL = register(
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
DOCKERFILE = register(
    Rule(
        id="TF811",
        name="dockerfile",
        summary=Text(
            "Dockerfiles: images with CUDA are reported, variables and commands become the target's",
            "Dockerfile：报告含 CUDA 的镜像，变量和命令换成目标设备的",
        ),
        triggers=(),
    )
)
REQUIREMENTS = register(
    Rule(
        id="TF812",
        name="requirements",
        summary=Text(
            "required packages that are built for CUDA, with what the vendor has",
            "为 CUDA 构建的依赖包，及厂商的对应方案",
        ),
        triggers=(),
    )
)
CONFIG = register(
    Rule(
        id="TF813",
        name="config",
        summary=Text(
            "YAML, JSON, TOML and INI: devices and backends become the target's, where a key says what they are",
            "YAML、JSON、TOML、INI：键名表明是设备或通信后端的值换成目标设备的",
        ),
        triggers=(),
    )
)
NOTEBOOK = register(
    Rule(
        id="TF814",
        name="notebook",
        summary=Text(
            "notebooks: the code cells are converted as one module; what is not Python in them is said",
            "notebook：代码单元作为一个模块整体转换；其中不是 Python 的部分会说明",
        ),
        triggers=(),
    )
)
