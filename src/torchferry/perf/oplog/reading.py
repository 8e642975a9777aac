"""Reads the host logs of a run: files, lines, counts, and what they come to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from torchferry.errors import InputError
from torchferry.logs import Progress, log_files
from torchferry.perf.oplog.counting import Counter, Forms, Marks, OperatorCounts, WarmUp, hits, recompiles
from torchferry.perf.oplog.model import Basis, OpLog
from torchferry.text import Text
from torchferry.vendors.host import HostLog, load_host
from torchferry.vendors.registry import get_vendor, vendor_names

_CUT = Text(
    "{count} signatures were longer than a line of the log ({limit} characters): calls that differ only behind that "
    "are counted as the same",
    "{count} 种签名超过日志行长（{limit} 个字符）：之后部分才有差别的调用被视为相同",
)
_NO_SECONDS = Text(
    "no line says how long a compile took; newer releases of the runtime log that with {setting}",
    "日志没有编译用时；较新的运行时在 {setting} 下记录",
)
_MANY = Text(
    "there were too many different signatures; {count} calls were counted without looking at theirs",
    "签名种类过多；{count} 次调用只计数而未区分签名",
)
Show = Callable[[int, int], None]  # is told how many bytes of how many were read


def host_log_of(name: str | None, vendor_path: Sequence[Path] = ()) -> tuple[str, HostLog]:
    """The vendor whose logs these are; unless named, the only one of which the form of logs is known."""
    names = [name] if name else vendor_names(vendor_path)
    found = {each: load_host(Path(get_vendor(each, vendor_path).folder)).host_log for each in names}
    known = {each: log for each, log in found.items() if log is not None}
    if len(known) == 1:
        return next(iter(known.items()))
    if known:
        raise InputError(f"several vendors' logs can be read: say whose with --to, one of {', '.join(known)}")
    raise InputError(f"what the host logs of {', '.join(names)} look like is not known; see `ferry vendors`")


def read_oplog(
    paths: Sequence[Path],
    vendor: str,
    log: HostLog,
    warm_up: WarmUp | None = None,
    show: Show | None = None,
) -> OpLog:
    """Read logs, and folders of logs, of one run."""
    files, unread = log_files(list(paths), log.skipped_folders)
    sizes = dict.fromkeys(files, 0)
    for file in files:
        with suppress(OSError):
            sizes[file] = file.stat().st_size
    progress = None if show is None else _adding(show, sum(sizes.values()))
    texts = [*log.operator, log.compile, *([log.miss] if log.miss else [])]
    marks = Marks(tuple(text.encode() for text in texts), len(log.operator), len(log.operator) + 1)
    counter = Counter(Forms(log), marks)
    for file in files:
        try:
            for hit in hits(file, marks.texts, progress):
                counter.add(hit)
        except OSError as error:
            unread[str(file)] = error.strerror or str(error)
    read = [file for file in files if str(file) not in unread]
    processes = counter.processes()
    if not processes:
        raise _nothing_found(paths, read, unread, log)
    counted = counter.results()
    chosen, basis, text = recompiles(counted.compiles, processes, warm_up or WarmUp())
    times = [entry.seconds for entry in counted.compiles if entry.seconds is not None]
    return OpLog(
        tuple(map(str, read)),
        vendor,
        counted.operators(chosen, log.conversions),
        chosen,
        basis,
        text,
        len(counted.compiles),
        sum(times) if times else None,
        processes,
        sum(sizes[file] for file in read),
        unread,
        tuple(_notes(counted, log, basis, bool(times))),
    )


def _adding(show: Show, total: int) -> Progress:
    done = 0

    def add(count: int) -> None:
        nonlocal done
        done += count
        show(done, total)

    return add


def _nothing_found(
    paths: Sequence[Path], read: list[Path], unread: dict[str, str], log: HostLog
) -> InputError:
    if not read:
        name, reason = next(iter(unread.items()))
        return InputError(f"{name}: can't be read ({reason}); {len(unread)} in all, check their permissions")
    settings = " ".join(log.settings)
    where = ", ".join(map(str, paths))
    return InputError(
        f"{where}: no line about operators in {len(read)} files; the runtime logs them only if asked: "
        f"export {settings}, run a few steps of the program, and unset them again, as logging costs speed"
    )


def _notes(counted: OperatorCounts, log: HostLog, basis: Basis, has_times: bool) -> list[Text]:
    cut = sum(signature.cut for rows in counted.signatures.values() for signature in rows)
    uncounted = sum(counted.uncounted.values())
    notes = [_CUT.format(count=cut, limit=log.line_limit)] if cut else []
    if counted.compiles and not has_times and log.settings:
        notes.append(_NO_SECONDS.format(setting=", ".join(log.settings)))
    if uncounted:
        notes.append(_MANY.format(count=uncounted))
    return notes
