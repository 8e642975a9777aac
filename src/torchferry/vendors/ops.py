"""Which aten operators have a kernel on a vendor's device; read only when asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchferry.errors import VendorError
from torchferry.text import Text
from torchferry.vendors.keys import Source
from torchferry.vendors.schema import OPS_FILE

_LINE = re.compile(r"(?P<name>[\w.:]+)(?P<rest>(?: [\w.\-]+| ~\w+| =\w+(?:,\w+)*)*)(?: \| (?P<limit>.+))?")


@dataclass(frozen=True)
class Ops:
    """A vendor's table of operators. Names are aten overloads (`add.Tensor`), without overload if only that is known;
    those of other libraries have their namespace (`torchvision::nms`)."""

    complete: bool  # False: an operator that is not listed is unknown, not missing
    versions: tuple[str, ...]  # adapter versions for which the table speaks
    kernels: Mapping[str, tuple[str, ...]]  # operator -> adapter versions that have it for dense tensors
    # operator -> the only kinds of tensor it takes: sparse, quantized, nested
    special: Mapping[str, tuple[str, ...]]
    limits: Mapping[str, str]  # operator -> what does not work, in words
    sources: tuple[Source, ...]
    # operator -> the only ones its first tensor may have
    dtypes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def has_kernel(self, op: str, version: str = "") -> bool | None:
        """Whether a dense kernel is known, for one adapter version or for any; None when it is not known."""
        versions = self.kernels.get(op)
        if versions is not None and (not version or version in versions):
            return True
        if not self.complete or (version and version not in self.versions):
            return None
        return False


def load_ops(vendor_folder: Path) -> Ops:
    """Read ops.txt of a vendor folder; without one nothing is known."""
    file = vendor_folder / OPS_FILE
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        lines = []
    except (OSError, UnicodeDecodeError) as error:
        raise VendorError(
            Text(
                f"{file}: can't be read ({error}); save it as a readable UTF-8 file",
                f"{file}：无法读取（{error}）；请保存为可读的 UTF-8 文件",
            )
        ) from None
    head: dict[str, list[str]] = {}
    kernels: dict[str, tuple[str, ...]] = {}
    special: dict[str, tuple[str, ...]] = {}
    limits: dict[str, str] = {}
    dtypes: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            key, colon, value = line[1:].partition(":")
            if colon:
                head.setdefault(key.strip(), []).append(value.strip())
        elif line.strip():
            match = _LINE.fullmatch(line.rstrip())
            if match is None:
                raise VendorError(
                    Text(
                        f"{file}: line {number} must be 'OPERATOR VERSION... [~KIND...] [=DTYPE,...] [| LIMIT]', found "
                        f"{line[:60]!r}; correct that line",
                        f"{file}：第 {number} 行应为 'OPERATOR VERSION... [~KIND...] [=DTYPE,...] [| LIMIT]'，实际为 "
                        f"{line[:60]!r}；请改正该行",
                    )
                )
            name = match["name"]
            versions_of, kinds = [], []
            for token in match["rest"].split():
                if token.startswith("="):
                    dtypes[name] = tuple(token[1:].split(","))
                elif token.startswith("~"):
                    kinds.append(token[1:])
                else:
                    versions_of.append(token)
            if kinds:
                special[name] = tuple(kinds)
            elif versions_of:
                kernels[name] = tuple(versions_of)
            if match["limit"]:
                limits[name] = match["limit"]
    every = head.get("versions", [""])[0].split()
    versions = tuple(version for version in every if version[0].isdigit())
    complete = head.get("complete", ["no"])[0] == "yes"
    sources = []
    for line in head.get("source", []):
        parts = [part.strip() for part in line.split("|")]
        sources.append(Source(*[*parts, "", ""][:3]))
    return Ops(complete, versions, kernels, special, limits, tuple(sources), dtypes)
