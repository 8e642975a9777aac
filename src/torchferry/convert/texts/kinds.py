"""Which files beside Python modules are looked at, and by what."""

from __future__ import annotations

import codecs
import os.path
import re
from collections.abc import Callable

from torchferry.convert.file import Conversion, FileJob
from torchferry.convert.texts.configs import convert_ini, convert_json, convert_toml, convert_yaml
from torchferry.convert.texts.dockerfile import convert_dockerfile
from torchferry.convert.texts.makefile import convert_makefile
from torchferry.convert.texts.native_ops import NATIVE_SUFFIXES, convert_native, is_native_of_interest
from torchferry.convert.texts.notebook import convert_notebook
from torchferry.convert.texts.requirements import convert_requirements, is_list_of_requirements
from torchferry.convert.texts.shell import convert_shell
from torchferry.source.decode import DecodedText

Converter = Callable[[DecodedText, str, FileJob], Conversion]

_BY_SUFFIX: dict[str, Converter] = {
    ".sh": convert_shell,
    ".bash": convert_shell,
    ".zsh": convert_shell,
    ".slurm": convert_shell,
    ".sbatch": convert_shell,
    ".env": convert_shell,
    ".yaml": convert_yaml,
    ".yml": convert_yaml,
    ".json": convert_json,
    ".toml": convert_toml,
    ".cfg": convert_ini,
    ".ini": convert_ini,
    ".mk": convert_makefile,
    ".ipynb": convert_notebook,
}
_ENVIRONMENT = ".env"  # a name, not a suffix
_DOCKERFILE = re.compile(r"(?i)(?:dockerfile.*|.*\.dockerfile|containerfile)\Z")
_MAKEFILE = re.compile(r"(?i)(?:gnu)?makefile\Z")
_SHELL_SCRIPT = re.compile(rb"#![^\n]*\b(?:sh|bash|zsh|dash)\b")
# A text without any of these says nothing of CUDA.
_WORDS = (
    *(b"cuda", b"CUDA", b"nccl", b"NCCL", b"nvidia", b"NVIDIA", b"gpu", b"GPU", b"distributed.launch"),
    *(b"nvcc", b"nvprof", b"nsys"),
    *(b"flash-attn", b"flash_attn", b"xformers", b"bitsandbytes", b"pynvml", b"apex"),
)


def might_be_text(path: str) -> bool:
    """Whether a file is worth reading, by its path alone."""
    name = os.path.basename(path)
    suffix = os.path.splitext(name)[1]
    return (
        "." not in name
        or suffix in _BY_SUFFIX
        or suffix in NATIVE_SUFFIXES
        or bool(_DOCKERFILE.match(name))
        or is_list_of_requirements(path)
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
    if is_list_of_requirements(path):
        return convert_requirements
    if name.endswith(".ipynb"):
        return convert_notebook  # its code may need conversion without any of the words
    if not any(word in data for word in _WORDS):
        return None
    if _DOCKERFILE.match(name):
        return convert_dockerfile
    if _MAKEFILE.match(name):
        return convert_makefile
    suffix = os.path.splitext(name)[1]
    if name == _ENVIRONMENT:
        return convert_shell
    if "." not in name:
        return convert_shell if _SHELL_SCRIPT.match(data) else None
    return _BY_SUFFIX.get(suffix)
