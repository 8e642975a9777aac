"""Small wheels of a plugin for tests: they hold nothing that computes."""

from __future__ import annotations

import platform
import zipfile
from pathlib import Path

from torchferry.building.toolchain import find_torch
from torchferry.emulate.plugins import python_tag, release_of

TORCH = release_of(find_torch().version)
TAG = f"{python_tag()}-{python_tag()}-manylinux_2_28_{platform.machine()}"
HEADERS = ("torch_npu/include/third_party/acl/inc/acl.h", "torch_npu/include/third_party/hccl/inc/hccl.h")


def wheel(
    place: Path,
    version: str = TORCH,
    tag: str = TAG,
    module: str = "torch_npu",
    files: dict[str, str] | None = None,
    metadata: bool = True,
) -> Path:
    """A wheel in a folder, under any name that one may have been given."""
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{module}-{version}-{tag.replace('/', '_')}.whl"
    info = f"{module}-{version}.dist-info"
    content = {f"{module}/__init__.py": f"VERSION = {version!r}\n", **dict.fromkeys(HEADERS, "")}
    if metadata:
        content[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {module}\nVersion: {version}\n"
        content[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nTag: {tag}\n"
        content[f"{info}/RECORD"] = ""
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**content, **(files or {})}.items():
            archive.writestr(name, text)
    return path
