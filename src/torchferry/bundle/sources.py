"""What the files are that a user names: a case, a record, logs. Imports no torch."""

from __future__ import annotations

from pathlib import Path

from torchferry.accuracy.file.chunks import SIGNATURE
from torchferry.bundle.model import BundleRequest, BundleSources
from torchferry.errors import InputError, RunError, not_readable
from torchferry.readiness.cases.writing import VARIABLE
from torchferry.text import Text


def sorted_sources(request: BundleRequest) -> BundleSources:
    """The case or record that the issue is about, and the logs."""
    cases: list[Path] = []
    records: list[Path] = []
    logs: list[Path] = []
    for path in request.sources:
        _check_readable(path)
        if path.is_dir():
            logs.append(path)
        elif _is_record(path):
            records.append(path)
        else:
            (cases if _is_case(path) else logs).append(path)
    if len(cases) + len(records) > 1:
        raise RunError(
            Text(
                f"{(cases + records)[1]}: a second operator; an issue covers one, so make a bundle for each",
                f"{(cases + records)[1]}：这是第二个算子；一个 issue 只涉及一个算子，请分别打包",
            )
        )
    if request.call is not None and not records:
        raise RunError(
            Text(
                "--call N needs a recording; name it, as in `ferry bundle npu.h5 --call 12`",
                "--call N 需要一份记录；例如 `ferry bundle npu.h5 --call 12`",
            )
        )
    return BundleSources(next(iter(cases), None), next(iter(records), None), tuple(logs))


def _check_readable(path: Path) -> None:
    if not path.exists():
        raise InputError(
            Text(
                f"no such file: {path}; name a case, a recording or logs",
                f"没有该文件：{path}；请给出用例、记录或日志",
            )
        )
    if not path.is_dir() and not path.is_file():
        raise InputError(
            Text(
                f"{path}: a pipe or a device; name a file or a folder of logs",
                f"{path}：是管道或设备；请给出文件或日志文件夹",
            )
        )


def _is_record(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(SIGNATURE)) == SIGNATURE
    except OSError as error:
        raise not_readable(path, error) from None


def _is_case(path: Path) -> bool:
    if path.suffix != ".py":
        return False
    text = path.read_bytes().decode("utf-8", "replace")
    if VARIABLE not in text or "def inputs(" not in text:
        raise InputError(
            Text(
                f"{path}: not a test of `ferry case`; only such tests can be sent",
                f"{path}：不是 `ferry case` 生成的测试；只能发送这种测试",
            )
        )
    if "sys.path.insert(" in text:
        raise InputError(
            Text(
                f"{path}: tests your own code, which the archive would not include; make a test of the operator "
                "inside it",
                f"{path}：测试的是您自己的代码，归档中不会包含；请为其中的算子生成测试",
            )
        )
    return True
