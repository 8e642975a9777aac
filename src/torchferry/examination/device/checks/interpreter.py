"""Whether the plugin is published for this Python and this processor."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchferry.examination.device.station import Station
from torchferry.examination.device.versions import release_of
from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text

ID = "python"
_FOUND = Text("Python {python} on {architecture}", "Python {python}，{architecture}")
_FITS = Text("the vendor publishes packages for it", "厂商发布了对应的软件包")
_UNKNOWN = Text("the Python versions that the vendor supports are unknown", "厂商支持哪些 Python 版本未知")
_OTHER_PYTHON = Text(
    "{name} is published only for Python {listed}; create an environment with one of them",
    "{name} 只为 Python {listed} 发布；请用其中之一创建环境",
)
_OTHER_BUILD = Text(
    "{file} of {name} is compiled for another Python, so importing it fails; reinstall {name} in "
    "this environment",
    "{name} 的 {file} 是为其他 Python 编译的，无法导入；请在当前环境中重新安装 {name}",
)
_OTHER_PROCESSOR = Text("{name} is published for {listed}", "{name} 只为 {listed} 发布")


def check(station: Station) -> Iterator[CheckResult]:
    """Yield the result of the check."""
    found = _FOUND.format(python=station.python, architecture=station.machine.architecture)
    row = release_of(station.table, station.plugin) if station.plugin else None
    rows = (row,) if row else station.table.releases  # all where there is no plugin
    name = station.table.plugin.package
    # where one row does not say, any may do
    pythons = {each: None for row in rows for each in row.python} if all(row.python for row in rows) else {}
    processors = {each: None for row in rows for each in row.architectures}
    if not all(row.architectures for row in rows):
        processors = {}
    # A compiled module of the plugin that names another Python, where none names this one.
    compiled = [file.name for file in station.plugin_files if re.search(r"\.cpython-3\d+", file.name)]
    ours = re.compile(rf"\.cpython-{station.python.replace('.', '')}\b")
    foreign = "" if any(map(ours.search, compiled)) else next(iter(compiled), "")
    if foreign:
        why = _OTHER_BUILD.format(file=foreign, name=name)
        yield CheckResult(ID, "Python", Status.BLOCKS, found, why)
    elif processors and station.machine.architecture not in processors:
        why = _OTHER_PROCESSOR.format(name=name, listed=", ".join(processors))
        yield CheckResult(ID, "Python", Status.DOUBT, found, why)
    elif not pythons:
        yield CheckResult(ID, "Python", Status.INFO, found, _UNKNOWN)
    elif station.python not in pythons:
        listed = ", ".join(sorted(pythons, key=lambda version: int(version[2:])))
        status = Status.DOUBT if station.plugin else Status.BLOCKS
        yield CheckResult(ID, "Python", status, found, _OTHER_PYTHON.format(name=name, listed=listed))
    else:
        yield CheckResult(ID, "Python", Status.FINE, found, _FITS)
