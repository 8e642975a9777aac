"""The one record that every stage reports in."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from torchferry.text import Text, joined_chinese

NO_TEXT = Text("", "")


class Kind(str, Enum):
    """What was learned about a place."""

    CHANGE = "change"  # done for you
    TODO = "todo"  # you must decide; the message says what and why
    UNSUPPORTED = "unsupported"  # the vendor does not have it
    UNKNOWN = "unknown"  # nothing public says whether the vendor has it
    RISK = "risk"  # works, but accuracy or speed may differ
    INFO = "info"  # left as it is, with the reason


class Severity(str, Enum):
    """What a finding asks of the user, the worst first."""

    BLOCKER = "blocker"  # the program can't run on the target until this is replaced, and there is no drop-in
    DECISION = "decision"  # the user chooses; what to do is known
    CHECK = "check"  # works as far as is known: look at it once
    NOTE = "note"  # nothing to do
    DONE = "done"  # the conversion has done it


# Of a finding whose rule does not say otherwise.
SEVERITIES = {
    Kind.CHANGE: Severity.DONE,
    Kind.TODO: Severity.DECISION,
    Kind.UNSUPPORTED: Severity.BLOCKER,
    Kind.UNKNOWN: Severity.CHECK,
    Kind.RISK: Severity.CHECK,
    Kind.INFO: Severity.NOTE,
}


@dataclass(frozen=True)
class Message:
    """What a rule says, in parts: findings with the same title have one cause and one recipe."""

    title: Text  # what is there, in a few words; without a full stop
    why: Text = NO_TEXT  # why it matters: whole sentences
    do: Text = NO_TEXT  # what to do: whole sentences
    severity: Severity | None = None  # where it is not that of the kind

    def format(self, **values: object) -> Message:
        """Fill the placeholders of all parts."""
        title, why, do = (part.format(**values) for part in (self.title, self.why, self.do))
        return Message(title, why, do, self.severity)

    def with_title(self, frame: Text, **values: object) -> Message:
        """The same with a longer title: `{title}` in the frame stands for this one."""
        return replace(self, title=frame.format(title=self.title, **values))

    def because(self, reason: Text) -> Message:
        """The same with one more sentence of why."""
        return replace(self, why=_joined(self.why, reason))

    def and_do(self, advice: Text) -> Message:
        """The same with one more sentence of what to do."""
        return replace(self, do=_joined(self.do, advice))


class RuleDoc(NamedTuple):
    """What a rule is about, for reports."""

    summary: Text  # one sentence
    about: Text = NO_TEXT  # what it does, and what it leaves alone


Wording = Text | Message  # a title alone, or all parts


def message_of(wording: Wording) -> Message:
    """All parts of what is said."""
    return wording if isinstance(wording, Message) else Message(wording)


@dataclass(frozen=True)
class Finding:
    """One thing learned about one place in the user's project."""

    rule: str
    kind: Kind
    path: str  # relative to the project, with forward slashes
    line: int  # 1-based
    col: int  # 1-based, in characters
    before: str
    after: str
    title: Text  # findings of a rule with the same title have one cause
    vendor: str
    url: str = ""  # the public source of what is said about the vendor
    why: Text = NO_TEXT
    do: Text = NO_TEXT
    severity: Severity = None  # type: ignore[assignment]  # by default that of the kind
    effort: int = 0  # minutes for the cause, however many places it has
    effort_each: int = 0  # minutes for each place
    source: str = ""  # the line as it stands in the file

    def __post_init__(self) -> None:
        object.__setattr__(self, "severity", self.severity or SEVERITIES[self.kind])

    @property
    def parts(self) -> Message:
        """What is said, in its parts."""
        return Message(self.title, self.why, self.do, self.severity)

    @property
    def message(self) -> Text:
        """All that is said, in one text."""
        return whole(self.title, self.why, self.do)


def finding_of(
    rule: str,
    kind: Kind,
    place: tuple[str, int, int],
    wording: Wording,
    vendor: str,
    *,
    before: str = "",
    after: str = "",
    url: str = "",
    source: str = "",
) -> Finding:
    """A finding with what a rule says about a place: its path, line and column."""
    said = message_of(wording)
    return Finding(
        rule,
        kind,
        *place,
        before,
        after,
        joined_chinese(said.title),
        vendor,
        url,
        sentences(said.why),
        sentences(said.do),
        said.severity or SEVERITIES[kind],
        source=source,
    )


_WORD = re.compile(r"[a-z]+(?=[\s,;:])")
_DOUBLED = re.compile(r"(?<!\.)\.\.(?=\s|$)")


def sentences(text: Text) -> Text:
    """Words from a vendor's table as whole sentences: with a capital at the beginning and a full stop at the end."""
    if not text.en:
        return text
    english, chinese = (
        _DOUBLED.sub(".", text.en.strip()),
        joined_chinese(text).zh.strip().replace("。。", "。"),
    )
    if _WORD.match(english):
        english = english[0].upper() + english[1:]
    english = english if english.endswith((".", "!", "?")) else f"{english}."
    chinese = chinese if chinese.endswith(("。", "！", "？")) else f"{chinese}。"
    return Text(english, chinese)


def undone(finding: Finding) -> Finding:
    """A change that was thrown away is work for the user."""
    if finding.kind is not Kind.CHANGE:
        return finding
    return replace(finding, kind=Kind.TODO, severity=Severity.DECISION)


def whole(title: Text, *sentences: Text) -> Text:
    """A title and the sentences that follow it, as one text."""
    if not any(sentence.en for sentence in sentences):
        return title
    return _joined(Text(f"{title.en}.", f"{title.zh}。"), *sentences)


def _joined(*sentences: Text) -> Text:
    said = [sentence for sentence in sentences if sentence.en]
    return Text(" ".join(each.en for each in said), "".join(each.zh for each in said))
