"""Which Pillow decodes and resizes images: pillow-simd is faster on x86, and libjpeg-turbo everywhere."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.examination.host.checks.processor import flags
from torchferry.examination.host.machine import Machine
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text

ID = "pillow"
_ABSENT = Text("not installed", "未安装")
_ABSENT_WHY = Text("only relevant if a program loads images", "程序不加载图像时无需处理")
_FOUND = Text("{name} {version}{turbo}", "{name} {version}{turbo}")
_TURBO = {
    True: Text(", with libjpeg-turbo", "，使用 libjpeg-turbo"),
    False: Text(", without libjpeg-turbo", "，未使用 libjpeg-turbo"),
    None: Text("", ""),
}
_SIMD = Text(
    "programs that load images benefit from pillow-simd, which resizes with vector instructions; it "
    "is based on Pillow 9, so try it in a separate environment",
    "加载图像的程序可受益于 pillow-simd，它用向量指令缩放图像；它对应 Pillow 9，请在单独的环境中尝试",
)
_IS_SIMD = Text("resizes with vector instructions", "使用向量指令缩放图像")
_NO_TURBO = Text(
    "JPEG files are decoded by plain libjpeg, several times slower; the wheels on PyPI include libjpeg-turbo",
    "JPEG 由普通 libjpeg 解码，慢数倍；PyPI 的 wheel 自带 libjpeg-turbo",
)
_ARM = Text(
    "pillow-simd supports only x86; no faster alternative is known for this processor",
    "pillow-simd 仅用于 x86；该处理器没有已知的更好选择",
)


def check(machine: Machine) -> Iterator[CheckResult]:
    """Yield the result of the check."""
    version, simd = machine.version("Pillow"), machine.version("pillow-simd")
    if version is None and simd is None:
        yield CheckResult(ID, "Pillow", Status.INFO, _ABSENT, _ABSENT_WHY)
        return
    turbo = machine.has_turbo_jpeg()
    name, shown = ("pillow-simd", simd) if simd else ("Pillow", version)
    found = _FOUND.format(name=name, version=shown, turbo=_TURBO[turbo])
    if turbo is False:
        command = Command("pip install --force-reinstall --only-binary :all: Pillow", Reach.INSTALL)
        yield CheckResult(ID, "Pillow", Status.COSTS, found, _NO_TURBO, (command,))
    elif simd:
        yield CheckResult(ID, "Pillow", Status.FINE, found, _IS_SIMD)
    elif machine.architecture in ("x86_64", "amd64"):
        build = "pip install -U --force-reinstall pillow-simd"
        build = f'CC="cc -mavx2" {build}' if "avx2" in flags(machine) else build
        commands = tuple(Command(line, Reach.INSTALL) for line in ("pip uninstall -y pillow", build))
        yield CheckResult(ID, "Pillow", Status.COULD, found, _SIMD, commands)
    else:
        yield CheckResult(ID, "Pillow", Status.FINE, found, _ARM)
