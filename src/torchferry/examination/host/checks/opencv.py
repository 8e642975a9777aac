"""Which OpenCV is installed, and its threads in loader workers."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.examination.host.machine import Machine
from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text

ID = "opencv"
_PACKAGES = tuple(f"opencv-{kind}python{head}" for kind in ("", "contrib-") for head in ("", "-headless"))
_RECOMMENDED = "3.4.10"
_ABSENT = Text("not installed", "未安装")
_ABSENT_WHY = Text("only relevant if a program uses cv2", "程序不使用 cv2 时无需处理")
_WHY = Text(
    "the migration guide recommends {version} for speed; measure whether it is faster here. Each "
    "loader worker starts one thread per processor: call cv2.setNumThreads(0) in worker_init_fn",
    "迁移指南出于速度建议 {version}；在本机是否更快需要测量。"
    "每个数据加载进程会启动与处理器数相同的线程：请在 worker_init_fn 中调用 cv2.setNumThreads(0)",
)
_SEVERAL = Text(
    "several of its packages overwrite each other's files; keep only one",
    "多个软件包互相覆盖文件；请只保留一个",
)


def check(machine: Machine) -> Iterator[CheckResult]:
    """Yield the result of the check."""
    found = {name: version for name in _PACKAGES if (version := machine.version(name)) is not None}
    if not found:
        yield CheckResult(ID, "OpenCV", Status.INFO, _ABSENT, _ABSENT_WHY)
        return
    listed = ", ".join(f"{name} {version}" for name, version in found.items())
    why = _WHY.format(version=_RECOMMENDED) if len(found) == 1 else _SEVERAL
    status = Status.INFO if len(found) == 1 else Status.COULD
    yield CheckResult(ID, "OpenCV", status, Text(listed, listed), why)
