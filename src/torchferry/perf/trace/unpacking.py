"""Unpacks gzip as far as it goes: all that a cut or damaged archive still holds."""

from __future__ import annotations

import zlib
from typing import IO

GZIP = b"\x1f\x8b"
_WITH_HEADER = 31  # zlib's number for an archive with a header of gzip's
_PIECE = 1 << 16


class Unpacking:
    """Reads like a file; in the end it knows whether the archive was whole."""

    def __init__(self, file: IO[bytes]) -> None:
        self.is_cut_short = False
        self._file = file
        self._archive = zlib.decompressobj(_WITH_HEADER)
        self._ready: list[bytes] = []
        self._is_over = False

    def read(self, size: int) -> bytes:
        """So many bytes or some more; fewer only at the end."""
        length = sum(map(len, self._ready))
        while length < size and not self._is_over:
            piece = self._next()
            self._ready.append(piece)
            length += len(piece)
        text = b"".join(self._ready)
        self._ready = []
        return text

    def _next(self) -> bytes:
        packed = self._file.read(_PIECE)
        if not packed:
            self._is_over = True
            self.is_cut_short = not self._archive.eof
            return self._archive.flush()
        text = b""
        while packed and not self._is_over:
            before = self._archive.copy()
            try:
                text += self._archive.decompress(packed)
            except zlib.error:
                self._is_over = self.is_cut_short = True
                return text + _up_to_the_damage(before, packed)
            packed = self._rest()
        return text

    def _rest(self) -> bytes:
        """What follows a whole archive: another one, or filling."""
        rest = self._archive.unused_data
        if not self._archive.eof or not rest.startswith(GZIP):
            return b""
        self._archive = zlib.decompressobj(_WITH_HEADER)
        return rest


def _up_to_the_damage(archive: zlib._Decompress, packed: bytes) -> bytes:
    found = []
    try:
        for position in range(len(packed)):
            found.append(archive.decompress(packed[position : position + 1]))
    except zlib.error:
        pass
    return b"".join(found)
