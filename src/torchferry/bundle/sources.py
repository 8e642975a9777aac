"""What the files are that a user names: a case, a record, logs. Imports no torch."""

from __future__ import annotations

from pathlib import Path

from torchferry.accuracy.file.chunks import SIGNATURE
from torchferry.bundle.model import BundleRequest, BundleSources
from torchferry.errors import InputError, RunError
from torchferry.readiness.cases.writing import VARIABLE


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
            f"{(cases + records)[1]}: is the second operator; an issue is about one, so make a bundle for each"
        )
    if request.call is not None and not records:
        raise RunError("--call N: of which record? Name it, as in `ferry bundle npu.h5 --call 12`")
    return BundleSources(next(iter(cases), None), next(iter(records), None), tuple(logs))


def _check_readable(path: Path) -> None:
    if not path.exists():
        raise InputError(f"{path}: no such file; name a case, a record or logs")
    if not path.is_dir() and not path.is_file():
        raise InputError(f"{path}: is a pipe or a device; name a file or a folder of logs")


def _is_record(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(SIGNATURE)) == SIGNATURE
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror}") from None


def _is_case(path: Path) -> bool:
    if path.suffix != ".py":
        return False
    text = path.read_bytes().decode("utf-8", "replace")
    if VARIABLE not in text or "def inputs(" not in text:
        raise InputError(f"{path}: is no test of `ferry case`, which is what can be sent; it makes one")
    if "sys.path.insert(" in text:
        raise InputError(
            f"{path}: tests code of your own, which the archive would not hold; make a test of the operator in it"
        )
    return True
