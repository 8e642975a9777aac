"""Finds the lines that may speak of errors in logs of any size: words are searched in blocks, nothing is decoded; lines
that say what was found before, or come behind more errors than anyone reads, are only counted."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from torchferry.explanation.lines import HEAD
from torchferry.explanation.model import FoundMessage, Log
from torchferry.explanation.rules import RuleBook, Shape
from torchferry.vendors.error_patterns import Effect

# Every error has one of these in its line or in one near to it, in capitals or not. Few, for each costs time.
TRIGGERS = (b"error", b"fail", b"warn", b"traceback")
_LETTERS = frozenset(b"".join(TRIGGERS) + b"".join(TRIGGERS).upper())
_OTHER_BYTES = bytes(byte for byte in range(256) if byte not in _LETTERS)
_DIGITS = b"0123456789"
_ADDRESS = re.compile(rb"0x[\da-fA-F]+")
_LOWERED = bytes(range(256)).lower()
# The beginning and the end are looked at line by line: a message without such a word (a shell's `Killed`, a pasted
# table) stands there.
WHOLE = 1 << 16
LONGEST_PIECE = 1 << 20  # of a line without end
END = 1 << 19  # bytes at the end that are looked at anew, however many errors there were
_CROWD = 32  # lines with a word in one block; the rest of it is sifted
_CLIP_BEFORE, _CLIP_AFTER = 1000, 3000  # what is kept of a longer line, around the word
_CONTEXT = 1 << 13
_ENDS = re.compile(rb"[\r\n]+")


class RawLine(NamedTuple):
    """A line without its end, and what stands before it."""

    number: int  # from 1 on
    line: bytes
    tail: bytes  # of the block before
    data: bytes
    start: int

    def before(self, count: int) -> list[bytes]:
        """The lines before it, as far as they are still there."""
        earlier = self.data[max(0, self.start - _CONTEXT) : self.start]
        if len(earlier) < _CONTEXT:
            earlier = self.tail + earlier
        lines = _ENDS.split(earlier.rstrip(b"\r\n"))
        return [line for line in lines if line][-count:]


class Scanner:
    """Goes through a log once."""

    def __init__(self, sieve: Repetitions) -> None:
        self._sieve = sieve
        self._following = 0
        self._whole = WHOLE  # bytes from here on of which every line is given
        self._tail = b""
        self._is_crowd = False  # whether the log has shown blocks with many such lines
        self.lines = 0  # read so far
        self.bytes = 0

    def follow(self, count: int) -> None:
        """Also give at least so many lines that come now, whatever is in them."""
        self._following = max(self._following, count)

    def interesting(self, blocks: Iterable[bytes]) -> Iterator[RawLine]:
        """The lines with one of the words, and those that the reader wants to follow."""
        rest = b""
        for block in self._renewed_at_end(blocks):
            self.bytes += len(block)
            rest += block
            end = self._end_of_part(rest)
            if end:
                yield from self._in(rest[:end])
                self._tail = rest[max(0, end - _CONTEXT) : end]
                rest = rest[end:]
        self._whole = len(rest)
        self._sieve.renew()
        yield from self._in(rest)
        self.lines += bool(rest) and not rest.endswith(b"\n")

    def _renewed_at_end(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        held: deque[bytes] = deque()
        size = 0
        for block in blocks:
            held.append(block)
            size += len(block)
            while size - len(held[0]) >= END:
                size -= len(held[0])
                yield held.popleft()
        self._sieve.renew()
        yield from held

    def _end_of_part(self, data: bytes) -> int:
        """How much can be looked at: whole lines, without what may be the log's end; 0 for nothing yet."""
        limit = len(data) - WHOLE
        end = data.rfind(b"\n", 0, max(0, limit)) + 1
        if end or limit < LONGEST_PIECE:
            return end
        return max(data.rfind(b"\r", 0, limit), data.rfind(b" ", 0, limit)) + 1 or limit

    def _in(self, data: bytes) -> Iterator[RawLine]:
        end = len(data)
        if not self._following and not self._whole:
            # without the bytes that no word has, there is far less to search
            squeezed = data.translate(_LOWERED, _OTHER_BYTES)
            if not any(trigger in squeezed for trigger in TRIGGERS):
                self.lines += data.count(b"\n")
                return
        can_sift = b"\r" not in data and data.endswith(b"\n")
        if self._is_crowd and not self._whole and can_sift:
            yield from self._sifted(data, 0)
            return
        lowered = data.lower()
        places = [lowered.find(trigger) for trigger in TRIGGERS]
        at = counted = given = 0
        while at < end:
            if given >= _CROWD and at >= self._whole and can_sift:
                self.lines += data.count(b"\n", counted, at)
                yield from self._sifted(data, at)
                counted, self._is_crowd = end, True
                break
            if self._following or at < self._whole:
                hit = start = at
            else:
                hit = _next(lowered, places, at)
                if hit < 0:
                    break
                start = data.rfind(b"\n", at, hit) + 1 or at
                start = data.rfind(b"\r", start, hit) + 1 or start
            stop, past = _end_of_line(data, hit, end)
            self.lines += data.count(b"\n", counted, start)
            counted = start
            self._following = max(0, self._following - 1)
            at = past
            if stop > start:
                given += 1
                yield self._given(data, start, hit, stop)
        self._whole = max(0, self._whole - end)
        self.lines += data.count(b"\n", counted, end)

    def _sifted(self, data: bytes, at: int) -> Iterator[RawLine]:
        """Those of the rest of a block that need a look."""
        rest = data[at:-1]
        forms = form_of(rest).split(b"\n")
        if not self._following and self._sieve.passes_all(forms, self.lines + 1):
            self.lines += len(forms)
            return
        for line, form in zip(rest.split(b"\n"), forms, strict=True):
            start, at = at, at + len(line) + 1
            if self._following:
                self._following -= 1
            elif self._sieve.passes(line, form, self.lines + 1):
                self.lines += 1
                continue
            if line:
                lowered = line.lower()
                word = next((place for place in map(lowered.find, TRIGGERS) if place >= 0), 0)
                yield self._given(data, start, start + word, at - 1)
            self.lines += 1

    def _given(self, data: bytes, start: int, hit: int, stop: int) -> RawLine:
        line = data[max(start, hit - _CLIP_BEFORE) : min(stop, hit + _CLIP_AFTER)]
        return RawLine(self.lines + 1, line, self._tail, data, start)


def form_of(line: bytes) -> bytes:
    """What lines that differ only in numbers have in common; also of many lines at once."""
    if b"0x" in line:
        line = _ADDRESS.sub(b"0x", line)
    return line.translate(None, _DIGITS)


def has_word(line: bytes) -> bool:
    """Whether one of the words stands in it."""
    lowered = line.lower()
    return any(trigger in lowered for trigger in TRIGGERS)


def _next(lowered: bytes, places: list[int], at: int) -> int:
    """The first place of any word from here on; -1 if there is none."""
    first = -1
    for number, place in enumerate(places):
        if 0 <= place < at:
            place = places[number] = lowered.find(TRIGGERS[number], at)
        if place >= 0 and (first < 0 or place < first):
            first = place
    return first


def _end_of_line(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Where the line ends, and where the next one begins; a progress bar's carriage return ends a line, too."""
    stop = data.find(b"\n", start, end)
    stop = end if stop < 0 else stop
    returned = data.find(b"\r", start, stop)
    if returned < 0:
        return stop, stop + 1
    return returned, returned + (2 if returned + 1 == stop else 1)


# The findings of one log: each with its first place, how often it came again, and what belongs together.

MOST = 300  # findings of one log that are kept
MOST_UNKNOWN = 200  # of which no rule knows; there must be room for the others
_NEAR = 40  # lines between two errors of one episode
_SURVIVED = 500  # lines without an error: whatever happened before, the program went on
_FAILURES = (Effect.ERROR, Effect.CONSEQUENCE)


class Findings:
    """The findings of one log, by keys that are equal for what says the same."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._found: dict[object, FoundMessage] = {}
        self._last_lines: dict[object, int] = {}
        self._last_error = -_NEAR
        self._survived_until = 0  # the last line of the errors after which the program went on
        self.episode = 0

    def __contains__(self, key: object) -> bool:
        return key in self._found

    def get(self, key: object) -> FoundMessage | None:
        """The finding with this key; None if it is not kept."""
        return self._found.get(key)

    @property
    def is_full(self) -> bool:
        """Whether no further error that no rule knows is kept."""
        return len(self._found) >= MOST_UNKNOWN

    def note_error(self, number: int) -> None:
        """An error, or the end of the log, is at this line."""
        apart = number - self._last_error
        self._last_error = number
        if apart > _NEAR:
            self.episode += 1
            if apart > _SURVIVED:
                self._survived_until = max(0, number - apart)

    def note_errors(self, numbers: Iterable[int]) -> None:
        """Errors are at these lines."""
        last = self._last_error
        for number in numbers:
            if number - last > _NEAR:
                self._last_error = last
                self.note_error(number)
            last = number
        self._last_error = last

    def note_run(self, first: int, last: int) -> None:
        """All lines from the first to the last are errors."""
        self.note_error(first)
        self._last_error = last

    def again(self, key: object, number: int) -> bool:
        """Whether this is known already; then it is counted."""
        if key not in self._found:
            return False
        self.add(key, 1, number)
        if self.is_failure(key):
            self.note_error(number)
        return True

    def add(self, key: object, count: int, number: int) -> None:
        """One that is kept came again, the last time at this line."""
        self._found[key].count += count
        self._last_lines[key] = number

    def is_failure(self, key: object) -> bool:
        """Whether one that is kept may end a program, or follow from what did."""
        finding = self._found[key]
        return not finding.is_spoken_of and finding.effect in _FAILURES

    def keep(self, key: object, finding: FoundMessage, last_line: int) -> None:
        """Keep a new finding, if there is room."""
        if len(self._found) >= MOST:
            self._log.left_out += 1
            return
        self._found[key] = finding
        self._last_lines[key] = last_line

    def leave_out(self, number: int) -> None:
        """An error for which there is no room."""
        self._log.left_out += 1
        self.note_error(number)

    def take_back(self, key: object) -> None:
        """What was counted last under this key is something else."""
        finding = self._found[key]
        finding.count -= 1
        if not finding.count:
            del self._found[key]

    def finish(self) -> None:
        """All lines were read: put what was found into the log."""
        self.note_error(self._log.lines)
        for key, finding in self._found.items():
            finding.lines_after = self._log.lines - self._last_lines[key]
            finding.is_survived = self._last_lines[key] <= self._survived_until
        self._log.findings = list(self._found.values())


MOST_FORMS = 2_000  # in crowds of error lines; of more, only the number is of interest
MOST_TRACEBACKS = 1_000
_ENOUGH = 1_000  # lines of one form that were all the same finding, though a number in them may matter
_MOST_SILENT = 1 << 14
_HEAD = HEAD.encode()
# The process that a line names, behind the time that a container's runtime has put there.
_PROCESS = re.compile(
    rb"(?:20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\S* (?:std(?:out|err) [FP] )?)?"
    rb"(\[[a-z0-9][^\]]*\]|(?:\([^)]*\) ?)+|[\w.-]{1,80} +\||)"
)


class Repetitions:
    """Which lines say what was found before; the sieve of a log."""

    def __init__(self, book: RuleBook, findings: Findings) -> None:
        self._book = book
        self._findings = findings
        self._silent: set[bytes] = set()  # forms of lines that speak of no error
        # Forms of lines that name no process -> the finding that they all are.
        self._same: dict[bytes, object] = {}
        self._same_of_process: dict[tuple[bytes, bytes], object] = {}  # the process, the form
        self._seen: Counter[tuple[bytes, object]] = Counter()
        self._forms_left = MOST_FORMS
        self._tracebacks_left = MOST_TRACEBACKS
        self._is_in_traceback = False  # that is not looked at
        self.only_counted = 0
        self.has_tasks = False

    def renew(self) -> None:
        """The log's end begins: it may hold what the first errors led to."""
        self._forms_left = MOST_FORMS
        self._tracebacks_left = MOST_TRACEBACKS

    def passes_all(self, forms: list[bytes], number: int) -> bool:
        """Whether all these lines are of known forms, or come behind too many others; then they are counted in one go."""
        distinct = set(forms)
        repeated = self._same.keys() & distinct
        others = [form for form in distinct if form not in repeated and form not in self._silent]
        # a line may be more than one error too many
        if others and (
            self._forms_left > 0 or any(_HEAD in form or self._book.is_known(form) for form in others)
        ):
            return False
        beyond = set(filter(has_word, others))
        failing = beyond | {form for form in repeated if self._findings.is_failure(self._same[form])}
        if len(failing) == len(distinct):
            self._findings.note_run(number, number + len(forms) - 1)
        else:
            self._findings.note_errors([at for at, form in enumerate(forms, number) if form in failing])
        for form in repeated:
            last = len(forms) - 1 - forms[::-1].index(form)
            self._findings.add(self._same[form], forms.count(form), number + last)
        self.only_counted += sum(form in beyond for form in forms) if beyond else 0
        return True

    def passes(self, line: bytes, form: bytes, number: int) -> bool:
        """Whether a line in a crowd speaks of no error, repeats one, or comes behind too many others."""
        if form in self._silent or self.count(line, form, number):
            return True
        is_known = self._book.is_known(form)
        shape = self._book.shape(line, form) if is_known else None
        if not has_word(form) or (is_known and shape is None):
            if len(self._silent) >= _MOST_SILENT:
                self._silent.clear()
            self._silent.add(form)
            return True
        if self._is_in_traceback or _HEAD in line:
            return self._tracebacks_left <= 0 and self.skips(line)
        if shape is None:
            self._forms_left -= 1
            has_room = self._forms_left >= 0
        else:
            has_room = shape.has_rules or not self._findings.is_full
        if has_room:
            return False
        self.only_counted += 1
        if b"rror" in form or b"RROR" in form:
            self._findings.note_errors([number])
        return True

    def skips(self, line: bytes) -> bool:
        """Whether the line belongs to a traceback that comes behind too many others."""
        if _HEAD in line:
            self._tracebacks_left -= 1
            self._is_in_traceback = self._tracebacks_left < 0
            self.only_counted += self._is_in_traceback
            return self._is_in_traceback
        was_in_traceback = self._is_in_traceback
        self._is_in_traceback = was_in_traceback and line[:1].isspace()
        return was_in_traceback

    def count(self, line: bytes, form: bytes, number: int) -> bool:
        """Whether a line that says the same has been looked at; then it is counted."""
        key = self._same.get(form)
        if key is None and self._same_of_process:
            key = self._same_of_process.get((self._process(line) or b"", form))
        return key is not None and self._findings.again(key, number)

    def remember(self, line: bytes, form: bytes, shape: Shape, key: object) -> None:
        """A line that was looked at is this finding."""
        if key not in self._findings:
            return
        if len(self._seen) > MOST:
            self._seen.clear()
        self._seen[form, key] += 1
        process = self._process(line)
        if process is None or not (shape.is_plain or self._seen[form, key] > _ENOUGH):
            return
        if len(self._same) + len(self._same_of_process) >= MOST:
            self._same.clear()
            self._same_of_process.clear()
        if process:
            self._same_of_process[process, form] = key
        else:
            self._same[form] = key

    def _process(self, line: bytes) -> bytes | None:
        """The part of a line that names its process, if any; None if it can't be told at a glance."""
        if self.has_tasks or line.startswith(b"\x1b"):
            return None
        match = _PROCESS.match(line)
        return match[1] if match else b""
