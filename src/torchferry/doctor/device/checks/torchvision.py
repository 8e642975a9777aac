"""Whether torchvision was built for the PyTorch beside it: else its compiled operators, as nms, are not there."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.doctor.device.elf import read_shared_object
from torchferry.doctor.device.station import Station
from torchferry.doctor.device.versions import build
from torchferry.doctor.model import Command, Reach, Result, Status
from torchferry.text import Text

ID = "torchvision"
_OF_TORCH = ("libtorch", "libc10")  # how the names of PyTorch's own libraries begin
_LACKS = Text(
    "its compiled part needs {names}, which this torch does not have: `import torchvision` fails with `operator "
    "torchvision::nms does not exist`",
    "其编译部分需要 {names}，而当前 torch 没有：`import torchvision` 会报错 `operator torchvision::nms does not exist`",
)
_FINE = Text("built for a torch like this one", "与当前 torch 的构建相符")
_INDEX = "https://download.pytorch.org/whl/{build}"


def check(station: Station) -> Iterator[Result]:
    """One result, where both packages are installed."""
    vision, torch = station.package("torchvision"), station.package("torch")
    version = station.machine.version("torchvision")
    if vision is None or torch is None or version is None:
        return
    read = [read_shared_object(file) for file in sorted(vision.glob("_C*.so"))]
    needed = {name for each in read if each is not None for name in each.needed if name.startswith(_OF_TORCH)}
    lacking = sorted(name for name in needed if not (torch / "lib" / name).exists())
    found = Text(version, version)
    if lacking:
        why = _LACKS.format(names=", ".join(lacking))
        yield Result(ID, "torchvision", Status.DOUBT, found, why, _commands(station))
    elif needed:
        yield Result(ID, "torchvision", Status.FINE, found, _FINE)


def _commands(station: Station) -> tuple[Command, ...]:
    index = _INDEX.format(build=build(station.torch or "") or "cpu")
    line = f"pip install --force-reinstall --no-deps torchvision --index-url {index}"
    return (Command(line, Reach.INSTALL),)
