"""Vendors that lack operators: copies of a built-in one, its table cut, its adapter falling back to the CPU."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from torchferry.vendors.model import Vendor

# Operators that most models call, in every form that a table may list.
COMMON = (
    "relu*", "threshold_backward*", "max_pool2d_with_indices*", "native_layer_norm*", "gelu*", "embedding*",
    "_softmax*", "_log_softmax*", "cat*", "_cat*", "addmm*", "bmm*", "native_dropout*", "_fused_dropout", "dropout*",
    "_masked_scale", "topk*", "index_put*", "_index_put_impl_*", "index.*", "upsample_bilinear2d*",
    "_foreach_add*", "_foreach_lerp*", "native_batch_norm*", "_batch_norm*", "batch_norm_backward", "convolution*",
    "_convolution*", "sum*", "mean*", "leaky_relu*", "sigmoid*", "mul*",
)  # fmt: skip
EVERYTHING = ("*",)

_FALLS_BACK = 'missing_operator = "falls_back"'


def without(vendor: Vendor, patterns: Iterable[str], folder: Path) -> Path:
    """A vendor of the same name in a new folder, whose table lacks what fits one of the patterns."""
    copy = folder / vendor.name
    shutil.copytree(vendor.folder, copy)
    table = copy / "ops.txt"
    lines = table.read_text("utf-8").splitlines(keepends=True)
    kept = [line for line in lines if line.startswith("#") or not _fits(line.split()[0], patterns)]
    table.write_text("".join(kept), "utf-8")
    description = copy / "vendor.toml"
    text = description.read_text("utf-8")
    # the first one: others, for sparse tensors, follow in tables of their own
    changed, found = re.subn(r'^missing_operator = ".*"$', _FALLS_BACK, text, count=1, flags=re.MULTILINE)
    assert found == 1
    description.write_text(changed, "utf-8")
    return copy


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
