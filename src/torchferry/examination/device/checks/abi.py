"""Whether plugin and PyTorch are compiled with the same form of C++ strings: with two, importing the plugin fails."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.examination.device.elf import symbol_names
from torchferry.examination.device.station import Station
from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text

ID = "abi"
# A function of PyTorch that every plugin calls, as it is named with strings of either form.
_CALLED = b"torchCheckFailEPKcS2_jRK"
_FORMS = {_CALLED + b"NSt7__cxx11": "1", _CALLED + b"Ss": "0"}
_FOUND = Text(
    "{plugin} is compiled with _GLIBCXX_USE_CXX11_ABI={theirs}, torch with {ours}",
    "{plugin} 以 _GLIBCXX_USE_CXX11_ABI={theirs} 编译，torch 为 {ours}",
)
_WHY = Text(
    "importing it fails with 'undefined symbol'; use a build of torch or of the plugin with the same setting",
    "导入会报 'undefined symbol'；请换用设置一致的 torch 或插件",
)


def check(station: Station) -> Iterator[CheckResult]:
    """One result, where they differ."""
    torch = station.package("torch")
    ours = _form(symbol_names(torch / "lib" / "libc10.so")) if torch and station.plugin_files else ""
    forms = (_form(symbol_names(file)) for file in station.plugin_files) if ours else ()
    theirs = next((form for form in forms if form and form != ours), "")
    if theirs:
        found = _FOUND.format(plugin=station.table.plugin.package, theirs=theirs, ours=ours)
        yield CheckResult(ID, "C++ ABI", Status.BLOCKS, found, _WHY)


def _form(names: bytes) -> str:
    """0 or 1; nothing where both are there, or neither."""
    found = [form for name, form in _FORMS.items() if name in names]
    return found[0] if len(found) == 1 else ""
