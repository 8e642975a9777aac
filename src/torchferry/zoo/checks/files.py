"""Whether files lie in the folder that do not belong into a repository of code."""

from __future__ import annotations

import os
from collections.abc import Iterator

from torchferry.text import Text
from torchferry.zoo.delivery import EVIDENCE, Delivery
from torchferry.zoo.model import Item, Status

ID = "files"
_LARGE = 10 << 20
_SHOWN = 5
_WEIGHTS = (".pth", ".pt", ".ckpt", ".safetensors", ".onnx", ".om", ".pth.tar", ".pdparams", ".h5", ".bin")
_DATA = (".tar", ".tar.gz", ".tgz", ".zip", ".lmdb", ".tfrecord", ".rec", ".npy", ".npz", ".parquet")
_CACHES = ("__pycache__/", ".pytest_cache/", ".ipynb_checkpoints/", "kernel_meta/", "wandb/")
_LARGE_FOUND = Text("larger than 10 MiB: {names}", "大于 10 MiB：{names}")
_WEIGHTS_FOUND = Text("weights: {names}", "权重：{names}")
_DATA_FOUND = Text("data: {names}", "数据：{names}")
_CACHES_FOUND = Text("made by running: {names}", "运行产生的文件：{names}")
_WHY = Text("take it out, and say in the README where it comes from", "请移除，并在 README 中说明其来源")
_CACHES_WHY = Text("take it out", "请移除")
_FINE = Text("{count} files, none that does not belong here", "{count} 个文件，没有不应提交的文件")


def check(delivery: Delivery) -> Iterator[Item]:
    """An item for each sort of file that is there."""
    large = [name for name in delivery.files if _size(delivery, name) > _LARGE]
    plain = [name for name in delivery.files if not name.startswith(f"{EVIDENCE}/")]
    weights = [name for name in plain if name.lower().endswith(_WEIGHTS)]
    data = [name for name in plain if name.lower().endswith(_DATA)]
    caches = [name for name in delivery.files if any(f"/{cache}" in f"/{name}" for cache in _CACHES)]
    sorts = (
        (large, _LARGE_FOUND, _WHY, Status.MISSING),
        (weights, _WEIGHTS_FOUND, _WHY, Status.MISSING),
        (data, _DATA_FOUND, _WHY, Status.DOUBT),
        (caches, _CACHES_FOUND, _CACHES_WHY, Status.DOUBT),
    )
    for names, text, why, status in sorts:
        if names:
            more = ", ..." if len(names) > _SHOWN else ""
            found = text.format(names=", ".join(names[:_SHOWN]) + more)
            yield Item(ID, "files", status, found, why)
    if not any(names for names, *_ in sorts):
        yield Item(ID, "files", Status.FINE, _FINE.format(count=len(delivery.files)))


def _size(delivery: Delivery, name: str) -> int:
    try:
        return os.lstat(delivery.root / name).st_size
    except OSError:
        return 0
