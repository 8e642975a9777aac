"""Which files beside Python modules are looked at, and by what."""

from __future__ import annotations

import codecs
import importlib
import os.path
import re
from collections.abc import Callable
from functools import cache
from typing import cast

from torchferry.conversion.file import Conversion, FileJob
from torchferry.conversion.texts.native_ops import NATIVE_SUFFIXES, convert_native, is_native_of_interest
from torchferry.source.decode import DecodedText

Converter = Callable[[DecodedText, str, FileJob], Conversion]

# The modules, and the functions in them, that convert a file; imported when there is one, as most projects have few.
_SHELL = "shell.convert_shell"
_YAML = "configs.convert_yaml"
_MAKE = "dockerfile.convert_makefile"
_NOTEBOOK = "notebook.convert_notebook"
_BY_SUFFIX = {
    **dict.fromkeys((".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".env"), _SHELL),
    **dict.fromkeys((".yaml", ".yml"), _YAML),
    ".json": "configs.convert_json",
    ".toml": "configs.convert_toml",
    **dict.fromkeys((".cfg", ".ini"), "configs.convert_ini"),
    ".mk": _MAKE,
    ".ipynb": _NOTEBOOK,
}
_ENVIRONMENT = ".env"  # a name, not a suffix
_DOCKERFILE = re.compile(r"(?i)(?:dockerfile.*|.*\.dockerfile|containerfile)\Z")
_MAKEFILE = re.compile(r"(?i)(?:gnu)?makefile\Z")
_REQUIREMENTS = re.compile(r"(?i)(?:^|/)(?:requirements|constraints)(?:[^/]*|/.*)\.(?:txt|in)\Z")
_SHELL_SCRIPT = re.compile(rb"#![^\n]*\b(?:sh|bash|zsh|dash)\b")
# A text without any of these says nothing of CUDA.
_GPU = re.compile(rb"gpu|GPU")
_WORDS = (
    b"cuda", b"CUDA", b"nccl", b"NCCL", b"nvidia", b"NVIDIA", b"distributed.launch", b"nvcc", b"nvprof",
    b"nsys", b"flash-attn", b"flash_attn", b"xformers", b"bitsandbytes", b"pynvml", b"apex",
)  # fmt: skip
# In YAML, GPUs that are neither a key nor a word of a program are prose, as in the tables of model zoos: 8x V100 GPUs.
_GPUS_IN_YAML = re.compile(rb"gpu|GPU\w*[\"']?[ \t]*[:=]|[_-]GPU|\+cu\d")


def might_be_text(path: str) -> bool:
    """Whether a file is worth reading, by its path alone."""
    name = os.path.basename(path)
    suffix = os.path.splitext(name)[1]
    return (
        "." not in name
        or suffix in _BY_SUFFIX
        or suffix in NATIVE_SUFFIXES
        or bool(_DOCKERFILE.match(name))
        or bool(_REQUIREMENTS.search(path))
        or name == _ENVIRONMENT
    )


def converter_of(path: str, data: bytes) -> Converter | None:
    """What converts a file that is no Python module; None if it is of no interest."""
    name = os.path.basename(path)
    if b"\0" in data[:1000]:
        # Text in UTF-16 is not rewritten, but neither passed over: whoever decodes it says so.
        is_utf_16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        data = data.decode("utf-16", "ignore").encode() if is_utf_16 else b""
    if name.endswith(NATIVE_SUFFIXES):
        return convert_native if is_native_of_interest(name, data) else None
    where = _where(path, name, data)
    return _imported(where) if where else None


def _where(path: str, name: str, data: bytes) -> str:
    if _REQUIREMENTS.search(path):
        return "requirements.convert_requirements"
    suffix = os.path.splitext(name)[1]
    known = _BY_SUFFIX.get(suffix, "")
    if known == _NOTEBOOK:
        return known  # its code may need conversion without any of the words
    if not any(word in data for word in _WORDS):
        speaks_of_gpus = _GPUS_IN_YAML.search(data) if known == _YAML else _GPU.search(data)
        if not speaks_of_gpus:
            return ""
    if _DOCKERFILE.match(name):
        return "dockerfile.convert_dockerfile"
    if _MAKEFILE.match(name):
        return _MAKE
    if name == _ENVIRONMENT:
        return _SHELL
    if "." not in name:
        return _SHELL if _SHELL_SCRIPT.match(data) else ""
    return known


@cache
def _imported(where: str) -> Converter:
    module, _, function = where.partition(".")
    return cast(Converter, getattr(importlib.import_module(f"{__package__}.{module}"), function))
