"""Explains all logs of a run, a message, or a code."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from torchferry.explain.lines import rank_in_name
from torchferry.explain.model import Explanation, Finding, Log
from torchferry.explain.ordering import failures, in_order
from torchferry.explain.reading import LogReader
from torchferry.explain.rules import RuleBook
from torchferry.logs.blocks import blocks, blocks_of_file
from torchferry.logs.files import log_files

Shown = Callable[[int, int, str], None]  # bytes read, bytes in all, the file


def explain_logs(paths: Sequence[Path], book: RuleBook, show: Shown | None = None) -> Explanation:
    """Read the files, and the logs in the folders; those that can't be read are named."""
    files, unread = log_files(list(paths), "")
    sizes = {file: _size(file) for file in files}
    total, done = sum(sizes.values()), 0
    logs: list[Log] = []
    for file in files:
        log = Log(str(file), rank_in_name(file.as_posix()))

        def progress(count: int, name: str = file.name) -> None:
            nonlocal done
            done += count
            if show is not None:
                show(done, total, name)

        try:
            source = blocks_of_file(file, progress, partial(setattr, log, "damage"))
            LogReader(book, log, len(logs), _year(file)).read(source)
        except OSError as error:
            unread[str(file)] = error.strerror or str(error)
        else:
            logs.append(log)
    return _explanation(logs, unread)


def explain_stream(
    stream: io.BufferedReader, name: str, book: RuleBook, copy: io.RawIOBase | io.BufferedIOBase | None = None
) -> Explanation:
    """Read a pipe to its end; what is read also goes to `copy`, at once."""
    log = Log(name)
    source = blocks(stream, damaged=partial(setattr, log, "damage"))
    LogReader(book, log, 0, time.localtime().tm_year).read(source if copy is None else _copied(source, copy))
    return _explanation([log], {})


def explain_text(text: str, book: RuleBook, name: str = "") -> Explanation:
    """A message by itself."""
    log = Log(name)
    LogReader(book, log, 0, time.localtime().tm_year).read([text.encode("utf-8", "surrogateescape")])
    return _explanation([log], {})


def explain_code(code: str, book: RuleBook) -> list[Finding]:
    """What an error code means; a vendor's own first."""
    return [
        Finding(match.pattern, 0, 0, code, 0, groups=match.groups, meaning=match.meaning)
        for match in book.code(code.strip())
    ]


def _explanation(logs: list[Log], unread: dict[str, str]) -> Explanation:
    ordered = in_order(logs)
    return Explanation(tuple(logs), ordered, failures(ordered), unread)


def _copied(source: Iterable[bytes], copy: io.RawIOBase | io.BufferedIOBase) -> Iterator[bytes]:
    for block in source:
        copy.write(block)
        copy.flush()
        yield block


def _size(file: Path) -> int:
    try:
        return os.stat(file).st_size
    except OSError:
        return 0


def _year(file: Path) -> int:
    """For lines that leave it out: the year in which the log was written last."""
    try:
        return time.localtime(os.stat(file).st_mtime).tm_year
    except OSError:
        return time.localtime().tm_year
