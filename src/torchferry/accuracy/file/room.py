"""How large the file of a record may become: what its user allows, and what the disk has to spare."""

from __future__ import annotations

import os

from torchferry.units import size

LIMITED, FULL = "limit reached", "disk nearly full"  # how the reasons begin, by which a record ends
_LEFT = 1 << 30  # bytes of the disk that stay free for others,
_SHARE = 20  # or this part of what was free at first, if that is less
_LOOK = 1 << 28  # bytes between looks at the disk


class Room:
    """For one file. Others fill the disk as well, so it is looked at again and again."""

    def __init__(self, descriptor: int, most: int | None) -> None:
        self._descriptor = descriptor
        self._most = most
        self._left = min(_LEFT, (_free(descriptor) or 0) // _SHARE)
        self.sure = 0  # so large it may become without another look

    def problem(self, end: int, written: int, spare: int) -> str:
        """Why a file of which so many bytes are on the disk must not reach so far, and then some; "" if it may."""
        most = self.most(written)
        left = most - end - spare
        if left >= 0:
            self.sure = end + min(left // 2, _LOOK)
            return ""
        if self._most is not None and most == self._most:
            return f"{LIMITED}: {size(most)}"
        return f"{FULL}: {size(self._left)}"

    def most(self, written: int) -> int:
        """How large a file may become at all of which so many bytes are on the disk."""
        free = _free(self._descriptor)
        on_disk = None if free is None else written + free - self._left
        return min(each for each in (self._most, on_disk, 1 << 62) if each is not None)


def _free(descriptor: int) -> int | None:
    """Bytes of the disk; None where that can't be told."""
    try:
        found = os.fstatvfs(descriptor)
    except (OSError, AttributeError):
        return None
    return (
        found.f_bavail * found.f_frsize if found.f_blocks else None
    )  # some file systems do not know their size
