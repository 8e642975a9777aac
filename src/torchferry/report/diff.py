"""Changed lines as a unified diff that `git apply` and `patch -p1` take, byte for byte."""

from __future__ import annotations

import os
import re
from difflib import SequenceMatcher

_CONTEXT = 3
# What git writes as an escape in a quoted name: control characters, the quote and the backslash.
_UNUSUAL = re.compile(rb'[\x00-\x1f\x7f"\\]')
_SHORT = {b"\n": b"\\n", b"\t": b"\\t", b"\r": b"\\r", b'"': b'\\"', b"\\": b"\\\\"}
_NO_NEWLINE = b"\n\\ No newline at end of file\n"


def new_file_diff(path: str, data: bytes, executable: bool) -> bytes:
    """A file that was not there before."""
    name = os.fsencode(path)
    lines = _lines(data)
    header = b"diff --git %s %s\nnew file mode %s\n--- /dev/null\n+++ %s\n@@ -0,0 +%s @@\n" % (
        _name(b"a/" + name).rstrip(b"\t"),
        _name(b"b/" + name).rstrip(b"\t"),
        b"100755" if executable else b"100644",
        _name(b"b/" + name),
        _range(0, len(lines)),
    )
    return header + b"".join(_row(b"+", line) for line in lines)


def unified_diff(path: str, old: bytes, new: bytes) -> bytes:
    """The changes of one file; its bytes are kept as they are, in whatever encoding and with whatever endings."""
    old_lines, new_lines = _lines(old), _lines(new)
    matcher = SequenceMatcher(None, old_lines, new_lines, autojunk=len(old_lines) > 2000)
    hunks = [_hunk(group, old_lines, new_lines) for group in matcher.get_grouped_opcodes(_CONTEXT)]
    if not hunks:
        return b""
    name = os.fsencode(path)
    return b"--- %s\n+++ %s\n%s" % (_name(b"a/" + name), _name(b"b/" + name), b"".join(hunks))


def _lines(data: bytes) -> list[bytes]:
    """Lines with their endings, as patch counts them: only a line feed ends one."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _hunk(group: list[tuple[str, int, int, int, int]], old: list[bytes], new: list[bytes]) -> bytes:
    first, last = group[0], group[-1]
    rows = [b"@@ -%s +%s @@\n" % (_range(first[1], last[2]), _range(first[3], last[4]))]
    for tag, old_start, old_end, new_start, new_end in group:
        if tag == "equal":
            rows += [_row(b" ", line) for line in old[old_start:old_end]]
        else:
            rows += [_row(b"-", line) for line in old[old_start:old_end]]
            rows += [_row(b"+", line) for line in new[new_start:new_end]]
    return b"".join(rows)


def _row(mark: bytes, line: bytes) -> bytes:
    return mark + line if line.endswith(b"\n") else mark + line + _NO_NEWLINE


def _range(start: int, end: int) -> bytes:
    count = end - start
    return b"%d,%d" % (start + 1 if count else start, count)


def _name(name: bytes) -> bytes:
    """A file name as git writes it: quoted if unusual; a tab ends one that holds a space."""
    if _UNUSUAL.search(name):

        def escape(match: re.Match[bytes]) -> bytes:
            return _SHORT.get(match.group()) or b"\\%03o" % ord(match.group())

        return b'"' + _UNUSUAL.sub(escape, name) + b'"'
    return name + b"\t" if b" " in name else name
