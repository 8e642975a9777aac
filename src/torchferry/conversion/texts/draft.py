"""The conversion of one text on its way: what is said about its places, the edits, and the proof that they are sound."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import starmap

from torchferry.conversion.file import Conversion, FileJob, shown_line
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.rules import paddle
from torchferry.conversion.target import Target
from torchferry.conversion.texts.text_rules import MOST_LINES, SPEAKS_OF_CUDA, TEXT_FILE, what_it_says
from torchferry.conversion.texts.words import Decision
from torchferry.conversion.verify import make_hunks
from torchferry.finding import Finding, Kind, Message, Wording, finding_of, undone
from torchferry.source.decode import DecodedText, SourceText
from torchferry.source.edits import Edit, EditSet, apply_edits, edited
from torchferry.text import Text

Span = tuple[int, int]
# Says what there is to say; answers with the spans of what it read.
Look = Callable[["Draft"], Sequence[Span]]

_PROSE = Message(
    Text("Comment or message that mentions CUDA", "提到 CUDA 的注释或提示文字"),
    why=Text("People read it, no program does, so it stays.", "供人阅读而非程序读取，因此保留。"),
)
_IGNORE = re.compile(r"#\s*ferry: ignore(?:\[([^\]]*)\]|(?![\w\[-]))")
# What stands before a word in a comment of any of these texts: a mark at the start of the line, or behind plain code.
_COMMENT = re.compile(r"[ \t]*(?:#|//|;)|[^\"'#]*[ \t]#")
_LONGEST = 200  # characters of a line that a report shows


class Draft:
    """One text and what has been said about it so far."""

    def __init__(self, source: SourceText, path: str, job: FileJob) -> None:
        self.source = source
        self.path = path
        self.job = job
        self.said: list[tuple[Rule, Proposal]] = []
        self._known: set[tuple[str, Proposal]] = set()  # a place may be seen twice
        self._edits = EditSet()
        self._prose: list[Span] = []
        self.is_whole = False  # what was said holds for the whole text: its lines are not looked at

    @property
    def target(self) -> Target:
        return self.job.target

    @cached_property
    def chars(self) -> str:
        """The text with one character per byte, so that positions in it are those of the bytes."""
        return self.source.data.decode("latin-1")

    def say(self, rule: Rule, kind: Kind, start: int, end: int, message: Wording) -> None:
        """Report a place."""
        self._add(rule, Proposal(kind, start, end, message))

    def change(self, rule: Rule, start: int, end: int, message: Wording, *edits: Edit) -> None:
        """Edit a place; where an edit is already, nothing is said twice."""
        if not any(map(self._edits.conflicts, edits)):
            self._edits.add(edits)
            self._add(rule, Proposal(Kind.CHANGE, start, end, message, edits))

    def settle(self, rule: Rule, decision: Decision, start: int, end: int, place: Span | None) -> None:
        """Do with a place what was decided; `place` is the text to replace, None where that can't be done here."""
        if decision.kind is Kind.CHANGE and place is not None:
            self.change(rule, start, end, decision.message, Edit(*place, decision.new))
        else:
            kind = Kind.TODO if decision.kind is Kind.CHANGE else decision.kind
            self.say(rule, kind, start, end, decision.message)

    def _add(self, rule: Rule, proposal: Proposal) -> None:
        if (rule.id, proposal) not in self._known:
            self._known.add((rule.id, proposal))
            self.said.append((rule, proposal))

    def prose(self, start: int, end: int) -> None:
        """What stands here is meant for people."""
        self._prose.append((start, end))

    def finish(self) -> None:
        """Drop what the user does not want to hear, and report the lines that nobody understood."""
        for match in paddle.IN_TEXTS.finditer(self.chars):
            self.say(paddle.RULE, Kind.TODO, match.start(), match.end(), paddle.LINE)
        heard = {self.source.line_of(proposal.start) for _, proposal in self.said}
        if not self.is_whole:
            self.said += self._unheard(heard)
        wanted = {rule.id for rule in self.job.rules.rules}
        self.said = [item for item in self.said if item[0].id in wanted and not self._is_ignored(*item)]
        self.said.sort(key=lambda item: (item[1].start, item[1].end, item[0].id))

    def _unheard(self, heard: set[int]) -> list[tuple[Rule, Proposal]]:
        found: list[tuple[Rule, Proposal]] = []
        for match in SPEAKS_OF_CUDA.finditer(self.chars):
            line = self.source.line_of(match.start())
            if line in heard:
                continue
            heard.add(line)
            start = self.source.line_starts[line - 1]
            end = start + len(self.source.line_text(line).encode("utf-8"))
            kind, message = Kind.TODO, what_it_says(match.group(), self.target)
            if self._is_prose(match.start()) or _COMMENT.match(self.chars[start : match.start()]):
                kind, message = Kind.INFO, _PROSE
            found.append((TEXT_FILE, Proposal(kind, match.start(), end, message)))
            if len(found) == MOST_LINES:
                break
        return found

    def _is_prose(self, position: int) -> bool:
        spans = sorted(self._prose)
        index = bisect_left(spans, (position + 1, 0)) - 1
        return index >= 0 and spans[index][0] <= position < spans[index][1]

    def _is_ignored(self, rule: Rule, proposal: Proposal) -> bool:
        match = _IGNORE.search(self.source.line_text(self.source.line_of(proposal.start)))
        if match is None:
            return False
        return not match.group(1) or rule.id in re.split(r"[\s,]+", match.group(1))

    @property
    def edits(self) -> list[Edit]:
        return sorted({edit for _, proposal in self.said for edit in proposal.edits})

    def findings(self) -> tuple[Finding, ...]:
        return tuple(starmap(self._finding, self.said))

    def _finding(self, rule: Rule, proposal: Proposal) -> Finding:
        source, start, end = self.source, proposal.start, proposal.end
        line = source.line_of(start)
        before = source.data[start:end].decode("utf-8", "replace")
        if rule is TEXT_FILE:
            before = source.line_text(line).strip()
        after = edited(source.data, start, end, proposal.edits).decode("utf-8") if proposal.edits else ""
        place = (self.path, line, source.column_of(start))
        return finding_of(
            rule.id,
            proposal.kind,
            place,
            proposal.message,
            self.target.name,
            before=before[:_LONGEST],
            after=after,
            source="" if proposal.edits else shown_line(source, line),
        )


def convert_with(look: Look, decoded: DecodedText, path: str, job: FileJob) -> Conversion:
    """Look at a text, edit it, and prove that it reads as before but for the edits, and that a second look edits nothing."""
    draft = Draft(SourceText(decoded), path, job)
    spans = look(draft)
    draft.finish()
    edits = draft.edits
    if not edits:
        return Conversion(draft.findings())
    new_text = apply_edits(draft.source.data, edits).decode("utf-8")
    again = Draft(SourceText(DecodedText(new_text, "utf-8")), path, job)
    new_spans = look(again)
    again.finish()
    failure = ""
    if again.edits:
        failure = f"a second conversion would change line {again.source.line_of(again.edits[0].start)} again"
    elif list(new_spans) != _moved(spans, edits):
        failure = "the rewritten text reads differently"
    if failure:
        return Conversion(tuple(map(undone, draft.findings())), failure=failure)
    return Conversion(draft.findings(), new_text, make_hunks(draft.source, again.source, edits))


def _moved(spans: Sequence[Span], edits: list[Edit]) -> list[Span]:
    """Where spans end up; an edit lies within one, or in none."""
    moved: list[Span] = []
    waiting = list(edits)
    shift = 0
    for start, end in sorted(spans):
        span: list[int] = []
        for position in (start, end):
            while waiting and waiting[0].end <= position:
                edit = waiting.pop(0)
                shift += len(edit.text) - (edit.end - edit.start)
            span.append(position + shift)
        moved.append((span[0], span[1]))
    return moved
