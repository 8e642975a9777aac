"""Whether PyTorch is installed, and has the device where it needs no plugin."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.examination.device.station import Station
from torchferry.examination.device.versions import advised, build, place, release
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text

ID = "torch"
_ABSENT = Text("not installed", "未安装")
_NEEDED = Text("every program needs it", "所有程序都需要它")
_BUILD = Text(
    "only PyTorch builds with +{build} have this device; this build is for something else",
    "只有带 +{build} 的 PyTorch 构建支持该设备；当前构建用于其他设备",
)
_FINE = Text("installed", "已安装")
_CUDA = Text(
    "a CUDA build, with several GB of libraries that are useless here; a CPU build works as well",
    "CUDA 构建：带有数 GB 在此无用的库；CPU 构建同样可用",
)
_FIRST_WITH_NUMPY_2 = "2.3"
_NUMPY = Text(
    "torch {torch} is compiled for numpy 1: with numpy 2, `tensor.numpy()` and data loaders fail",
    "torch {torch} 为 numpy 1 编译：使用 numpy 2 时 `tensor.numpy()` 与数据加载会失败",
)

_FIRST_TORCHVISION = 15  # of torch 2.0
_PROCESSORS = "https://download.pytorch.org/whl/cpu"
_TORCHVISION = Text(
    "it does not match torch {torch} (another release, or a CUDA build with a CPU torch): `import "
    "torchvision` fails with `operator torchvision::nms does not exist`",
    "它与 torch {torch} 不对应（版本不同，或是 CUDA 构建而 torch 为 CPU 构建）：`import torchvision` "
    "会报 `operator torchvision::nms does not exist`",
)


def check(station: Station) -> Iterator[CheckResult]:
    """Yield the result of the check."""
    version, wanted = station.torch, station.table.plugin.torch_build
    if version is None:
        yield CheckResult(ID, "torch", Status.BLOCKS, _ABSENT, _NEEDED, _commands(station))
    elif wanted and build(version) != wanted:
        commands = (Command(station.table.plugin.get, Reach.INSTALL),) if station.table.plugin.get else ()
        yield CheckResult(
            ID, "torch", Status.BLOCKS, Text(version, version), _BUILD.format(build=wanted), commands
        )
    else:
        is_other = not wanted and build(version).startswith("cu")
        status, why = (Status.INFO, _CUDA) if is_other else (Status.FINE, _FINE)
        yield CheckResult(ID, "torch", status, Text(version, version), why)
    numpy = station.machine.version("numpy")
    if version and numpy and place(version) < place(_FIRST_WITH_NUMPY_2) and place(numpy) >= place("2"):
        command = Command("pip install 'numpy<2'", Reach.INSTALL)
        why = _NUMPY.format(torch=version)
        yield CheckResult(ID, "numpy", Status.DOUBT, Text(numpy, numpy), why, (command,))
    yield from _torchvision(station, version)


def _torchvision(station: Station, torch: str | None) -> Iterator[CheckResult]:
    """On PyPI torchvision is a build for CUDA, on this processor; its operators load beside such a torch only."""
    version = station.machine.version("torchvision")
    if not torch or not version or not torch.startswith("2."):
        return
    is_for_cuda = build(torch) == "cpu" and not build(version)
    is_of_other_build = is_for_cuda and station.machine.architecture == "x86_64"
    # pytorch/vision, README: torchvision 0.15 belongs to torch 2.0, and both go up together.
    belonging = (0, release(torch)[1] + _FIRST_TORCHVISION)
    if is_of_other_build or release(version) != belonging:
        wanted = ".".join(map(str, belonging))
        index = f" --index-url {_PROCESSORS}" if build(torch) == "cpu" else ""
        line = f"pip install --force-reinstall --no-deps 'torchvision=={wanted}.*'{index}"
        command = Command(line, Reach.INSTALL)
        why = _TORCHVISION.format(torch=torch)
        yield CheckResult(ID, "torchvision", Status.DOUBT, Text(version, version), why, (command,))


def _commands(station: Station) -> tuple[Command, ...]:
    facts = station.table.plugin
    if facts.torch_build and facts.get:
        return (Command(facts.get, Reach.INSTALL),)
    row = advised(station.table, None, station.toolkit, station.python, station.machine.architecture)
    version = row.torch if row else ""
    wanted = (
        f"torch=={version}" if version.count(".") == 2 else f"'torch=={version}.*'" if version else "torch"
    )
    return (Command(f"pip install {wanted}", Reach.INSTALL),)
