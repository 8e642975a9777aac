"""Whether a module moves models or images to a device, told from its bytes: parsing it to find out takes far longer."""

from __future__ import annotations

import re

_MODEL = rb"(?:model|net|network|backbone)"
_IS_MODEL = re.compile(rb"(?i)(?:.*\.)?" + _MODEL + rb"\Z")
_IS_NAMED = re.compile(rb"(?i)(?:.*\.)?(?:" + _MODEL + rb"|images?|imgs?)\Z")
_MOVE = re.compile(rb"\.(?:to|cuda)\(")
_TARGETS = re.compile(rb"[ \t]*((?:[\w.]+[ \t]*,[ \t]*)*[\w.]+)[ \t]*(?:,[ \t]*)?=(?!=)")
_MOVED_ITSELF = re.compile(rb"[ \t]*([\w.]+)\Z")
_WITH_PARAMETERS = re.compile(rb"\.(?:named_)?parameters\(")
_NAME_BEFORE = re.compile(rb"[\w.]+\Z")
_LONGEST = 4000  # bytes of a statement


def moves_models_or_images(data: bytes) -> bool:
    """Whether something is moved that is called a model or images, has parameters, or is given to a model."""
    moved: set[bytes] = set()
    for match in _MOVE.finditer(data):
        moved.update(_moved(data, match.start()))
    if any(map(_IS_NAMED.match, moved)):
        return True
    if not moved:
        return False
    models = {_before(data, match.start()) for match in _WITH_PARAMETERS.finditer(data)}
    if not moved.isdisjoint(models):
        return True
    given = re.compile(rb"\(\s*(?:" + b"|".join(map(re.escape, sorted(moved))) + rb")\b")
    called = {_before(data, match.start()) for match in given.finditer(data)}
    return any(name in models or _IS_MODEL.match(name) for name in called)


def _moved(data: bytes, position: int) -> list[bytes]:
    """The variables of the statement in which something is moved; none if it moves no variable."""
    start = data.rfind(b"\n", 0, position) + 1
    itself = _MOVED_ITSELF.match(data[start:position])
    if itself:
        return [itself.group(1)]
    # A statement of several lines begins where as many brackets are open as are closed.
    while _closed(data[start:position]) > 0 and start > max(0, position - _LONGEST):
        start = data.rfind(b"\n", 0, start - 1) + 1
    targets = _TARGETS.match(data, start, position)
    return [name.strip() for name in targets.group(1).split(b",")] if targets else []


def _closed(text: bytes) -> int:
    """How many more brackets a text closes than it opens."""
    return sum(map(text.count, (b")", b"]", b"}"))) - sum(map(text.count, (b"(", b"[", b"{")))


def _before(data: bytes, position: int) -> bytes:
    """The dotted name that ends here."""
    match = _NAME_BEFORE.search(data, max(0, position - 100), position)
    return match.group() if match else b""
