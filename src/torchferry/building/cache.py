"""Where compiled libraries are kept, and how processes share the place."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from torchferry.errors import BuildError, system_reason
from torchferry.files.user_folder import VARIABLE, cache_folder, is_trusted, private_temporary_folder
from torchferry.text import Text, user_language

_UNUSED_SECONDS = 14 * 24 * 3600


def folder(product: str) -> Path:
    """The folder that holds one folder per build of a product, such as `sim`; it need not exist."""
    return cache_folder() / product


_NOT_SAFE = Text("others can write there, or it belongs to another user", "其他用户可写，或属于其他用户")
_ELSEWHERE = Text(
    "{wanted} can't be used ({problem}); building in {instead}; set ${variable} to choose another place",
    "无法使用 {wanted}（{problem}）；改在 {instead} 构建；可设置 ${variable} 指定其他位置",
)


def writable_folder(product: str) -> Path:
    """The same, made if need be; a temporary folder if it can't be written to."""
    wanted = folder(product)
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=wanted):
            if is_safe_to_load(wanted):
                return wanted
        problem = _NOT_SAFE
    except OSError as error:
        problem = system_reason(error)
    instead = private_temporary_folder()
    said = _ELSEWHERE.format(wanted=wanted, problem=problem, instead=instead, variable=VARIABLE)
    print(f"torchferry: {said.in_language(user_language())}", file=sys.stderr)
    return instead


def is_safe_to_load(path: Path) -> bool:
    """Whether a file or folder in the cache was put there by this user or root: libraries are loaded from it."""
    cache = cache_folder()
    between = [place for place in path.parents if place.is_relative_to(cache)]
    return all(map(is_trusted, (path, *between)))


@contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a lock; the kernel lets go of it when the process ends, however that happens."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            raise BuildError(
                Text(
                    f"{path} can't be locked on this file system; set ${VARIABLE} to a folder on another disk",
                    f"{path} 所在的文件系统不支持加锁；请将 ${VARIABLE} 设为其他磁盘上的文件夹",
                )
            ) from error
        yield


def mark_used(path: Path) -> None:
    """Remember that something was used today."""
    with suppress(OSError):  # a cache that others have filled may be read-only
        os.utime(path)


def put_in_place(made: Path, place: Path) -> None:
    """Let a finished folder appear at once; what was there, incomplete, makes way."""
    if place.exists():
        remove(place)
    made.rename(place)
    mark_used(place)


def remove_unused(cache: Path, objects: Path, label: str) -> None:
    """Remove builds and objects for the same PyTorch that were not used for two weeks."""
    builds = [path for path in cache.glob(f"{label}-*") if path.is_dir() and path != objects]
    for path in [*builds, *objects.iterdir()]:
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _UNUSED_SECONDS:
                remove(path)


def remove(path: Path) -> None:
    """Let it vanish at once: another process must not find half of it."""
    away = path.with_name(f"{path.name}.removed")
    path.replace(away)
    if away.is_dir():
        shutil.rmtree(away)
    else:
        away.unlink()
