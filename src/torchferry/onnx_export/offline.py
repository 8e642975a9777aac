"""The vendor's own step after ONNX: how its converter is called, and calling it. Imports no torch."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from torchferry.errors import RunError
from torchferry.launch.supervise import own_stderr, run_supervised, stop_if_told
from torchferry.onnx_export.model import Exported
from torchferry.text import Text
from torchferry.vendors.offline import OfflineTable

CHIP = "CHIP"  # stands in a command for a name that only the user knows


def command_for(table: OfflineTable, exported: Exported, chip: str) -> list[str]:
    """The words of the vendor's command; for free sizes those that were compared with PyTorch."""
    model = Path(exported.output)
    profiles = _profiles(exported)
    inputs = exported.inputs
    if len(profiles) <= 1:  # with the only sizes that the model takes
        sizes = exported.checks[0].sizes if exported.checks else {}
        inputs = tuple(
            replace(port, shape=tuple(str(sizes.get(size, size)) for size in port.shape)) for port in inputs
        )
    free = [axis for port in inputs for axis, size in enumerate(port.shape) if not size.isdecimal()]
    symbols = {size for port in inputs for size in port.shape if not size.isdecimal()}
    is_batch = not any(free) and len(symbols) == 1
    further = table.fixed if not free else table.dynamic if is_batch else table.dynamic_other
    shapes = [
        table.shape.format(
            name=port.name,
            sizes=",".join(size if size.isdecimal() else table.free_size for size in port.shape),
        )
        for port in inputs
    ]
    values = {
        "onnx": str(model),
        "output": str(model.with_suffix(table.suffix)),
        "chip": chip or CHIP,
        "batches": ",".join(profile[0] for profile in profiles if profile),
        "profiles": ";".join(map(",".join, profiles)),
        "shapes": table.shape_separator.join(shapes),
    }
    words = [table.tool]
    for word in (*table.command, *further):
        is_list = word == "{shapes}" and table.shape_separator == " "
        words += shapes if is_list else [word.format(**values)]
    return words


def results_of(table: OfflineTable, exported: Exported) -> list[Path]:
    """The files that the tool writes."""
    return [Path(exported.output).with_suffix(suffix) for suffix in table.results]


def _profiles(exported: Exported) -> list[tuple[str, ...]]:
    """The free sizes in the order of the inputs, as often as there were others in the comparison."""
    symbols = [size for port in exported.inputs for size in port.shape if not size.isdecimal()]
    tried = [tuple(str(check.sizes[symbol]) for symbol in symbols) for check in exported.checks]
    return sorted(set(tried), key=lambda profile: list(map(int, profile)))


def lacks_chip(command: Sequence[str]) -> bool:
    """Whether the name of the chip is still to be filled in."""
    return any(word.split("=")[-1] == CHIP for word in command)


def find_tool(table: OfflineTable) -> str | None:
    """Where the converter is, on PATH or where its toolkit puts it."""
    places = os.pathsep.join((os.environ.get("PATH", ""), *table.tool_folders))
    return shutil.which(table.tool, path=places)


def check_tool(table: OfflineTable, chip: str) -> None:
    """Whether the converter could be called, asked before a long export."""
    if find_tool(table) is None:
        raise RunError(
            Text(
                f"--run: {table.tool} is not installed here; install the vendor's toolkit, or leave out --run and "
                "run the printed command where it is installed",
                f"--run：此处没有安装 {table.tool}；请安装厂商工具包，或去掉 --run "
                "并在安装了它的机器上执行打印出的命令",
            )
        )
    if not chip and any("{chip}" in word for word in table.command):
        raise RunError(
            Text(
                f"--run: {table.tool} needs the chip's name; add --chip ({table.chip.en})",
                f"--run：{table.tool} 需要芯片名称；请加 --chip（{table.chip.zh}）",
            )
        )


def run_tool(table: OfflineTable, command: Sequence[str], results: Sequence[Path]) -> None:
    """Call the converter; what it prints goes to stderr. If it fails or is stopped, what it has written is taken away."""
    program = find_tool(table)
    assert program is not None, "check_tool comes first"
    before = list(map(_written, results))
    ending = run_supervised([program, *command[1:]], os.environ, stdout=own_stderr())
    if ending.exit_code or ending.signal:
        for file, earlier in zip(results, before, strict=True):
            if _written(file) != earlier:
                file.unlink(missing_ok=True)
    stop_if_told(ending)
    if ending.exit_code:
        raise RunError(
            Text(
                f"{table.tool} ended with exit code {ending.exit_code}; its output is above",
                f"{table.tool} 以退出码 {ending.exit_code} 结束；其输出见上文",
            )
        )
    missing = [str(file) for file in results if not file.exists()]
    if missing:
        raise RunError(
            Text(
                f"{table.tool} succeeded, but {', '.join(missing)} does not exist; its output is above",
                f"{table.tool} 执行成功，但没有生成 {', '.join(missing)}；其输出见上文",
            )
        )


def _written(file: Path) -> int | None:
    return file.stat().st_mtime_ns if file.exists() else None
