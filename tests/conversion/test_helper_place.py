"""Where the module goes that converted files import: within reach of every file, however that one is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchferry.conversion.added import place_helper

MAIN = "if __name__ == '__main__': pass\n"
PROJECTS: dict[str, tuple[dict[str, str], dict[str, tuple[str, str]]]] = {
    "a script: beside it": (
        {"train.py": MAIN},
        {"train.py": ("", "")},
    ),
    "a script and its modules: one for all": (
        {"train.py": "import data\nfrom model import Net\n" + MAIN, "data.py": "", "model.py": "import data\n"},
        {"train.py": ("", ""), "data.py": ("", ""), "model.py": ("", "")},
    ),
    "a folder without __init__.py: found from where its importers start": (
        {"train.py": "from models.net import Net\n" + MAIN, "models/net.py": "import torch\n"},
        {"train.py": ("", ""), "models/net.py": ("", "")},
    ),
    "several scripts in several folders: one in each": (
        {"a/train.py": "import net\n" + MAIN, "a/net.py": "", "b/train.py": MAIN},
        {"a/train.py": ("a", ""), "a/net.py": ("a", ""), "b/train.py": ("b", "")},
    ),
    "an installed package: inside it": (
        {"setup.py": "", "pkg/__init__.py": "", "pkg/ops/__init__.py": "", "pkg/ops/nms.py": "import torch\n"},
        {"pkg/ops/nms.py": ("pkg", "pkg")},
    ),
    "an installed package with relative imports": (
        {"setup.py": "", "pkg/__init__.py": "", "pkg/ops/__init__.py": "", "pkg/ops/nms.py": "from . import x\n"},
        {"pkg/ops/nms.py": ("pkg", "..")},
    ),
    "a package below src": (
        {"pyproject.toml": "", "src/pkg/__init__.py": "", "src/pkg/a.py": "from pkg import b\n"},
        {"src/pkg/a.py": ("src/pkg", "pkg")},
    ),
    "a script that imports the installed package: that of the package": (
        {"setup.py": "", "pkg/__init__.py": "", "pkg/a.py": "", "tools/train.py": "from pkg.a import f\n" + MAIN},
        {"pkg/a.py": ("pkg", "pkg"), "tools/train.py": ("pkg", "pkg")},
    ),
    "a script that finds the package by a way of its own: beside it": (
        {
            "setup.py": "",
            "pkg/__init__.py": "",
            "pkg/a.py": "",
            "tools/train.py": "import sys\nsys.path.insert(0, '..')\nfrom pkg.a import f\n" + MAIN,
        },
        {"tools/train.py": ("tools", "")},
    ),
    "packages that only the scripts beside them use: beside the scripts": (
        {
            "train.py": "from utils.a import f\nimport models\n" + MAIN,
            "utils/__init__.py": "",
            "utils/a.py": "",
            "models/__init__.py": "from .net import Net\n",
            "models/net.py": "from utils.a import f\n",
        },
        {"train.py": ("", ""), "utils/a.py": ("", ""), "models/__init__.py": ("", ""), "models/net.py": ("", "")},
    ),
    "a library with the name of a module beside": (
        {"setup.py": "", "pkg/__init__.py": "", "pkg/deepspeed.py": "import torch\n", "pkg/a.py": "import deepspeed\n"},
        {"pkg/deepspeed.py": ("pkg", "pkg"), "pkg/a.py": ("pkg", "pkg")},
    ),
    "the project is the package": (
        {"__init__.py": "", "a.py": "from . import b\n", "sub/__init__.py": "", "sub/c.py": "import torch\n"},
        {"a.py": ("", "."), "sub/c.py": ("", "..")},
    ),
    "the project is the package, and its files say its name": (
        {"__init__.py": "", "cli.py": "from pkg.a import f\n" + MAIN, "a.py": "import torch\n"},
        {"cli.py": ("", "pkg"), "a.py": ("", ".")},
    ),
    "a script that lies in a package's folder": (
        {"setup.py": "", "pkg/__init__.py": "", "pkg/train.py": "import net\n" + MAIN, "pkg/net.py": "import torch\n"},
        {"pkg/train.py": ("pkg", ""), "pkg/net.py": ("pkg", "")},
    ),
    "a script of the package itself": (
        {"setup.py": "", "pkg/__init__.py": "", "pkg/train.py": "from pkg import net\n" + MAIN, "pkg/net.py": ""},
        {"pkg/train.py": ("pkg", "pkg"), "pkg/net.py": ("pkg", "pkg")},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "places"), list(PROJECTS.values()), ids=list(PROJECTS))
def test_places(files: dict[str, str], places: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    project = tmp_path / "pkg"
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    placement = place_helper(project, list(files))
    found = {name: (placement.folders[name], placement.packages.get(name, "")) for name in places}
    assert found == places


@pytest.mark.parametrize(
    "text",
    [
        "from pkg.a import (\n    f,  # that one\n    g as h,\n)\n",
        "from pkg import a as b, c\n",
        "import os, pkg.a\n",
        "def f():\n    import pkg.a as it\n",
        "try:\r\n    from pkg.a import f\r\nexcept ImportError:\r\n    pass\r\n",
    ],
)
def test_imports_are_seen(text: str, tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "a.py").write_text("")
    (tmp_path / "setup.py").write_text("")
    (tmp_path / "train.py").write_bytes(text.encode())
    placement = place_helper(tmp_path, ["pkg/__init__.py", "pkg/a.py", "setup.py", "train.py"])
    assert placement.packages["train.py"] == "pkg"
