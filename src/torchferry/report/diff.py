"""Changed lines as a unified diff."""

from __future__ import annotations

from torchferry.outcome import Hunk, Report
from torchferry.report.safe import printable


def unified_diff(report: Report) -> str:
    """The changes of all files, in the form that `patch` and reviewers read."""
    parts: list[str] = []
    for record in report.files:
        if record.hunks:
            parts.append(f"--- a/{printable(record.path)}\n+++ b/{printable(record.path)}\n")
            parts.extend(_hunk(hunk) for hunk in record.hunks)
    return "".join(parts)


def _hunk(hunk: Hunk) -> str:
    old = sum(tag != "+" for tag, _, _ in hunk.lines)
    new = sum(tag != "-" for tag, _, _ in hunk.lines)
    lines = [f"@@ -{hunk.old_start},{old} +{hunk.new_start},{new} @@"]
    removed: list[str] = []
    added: list[str] = []
    for tag, left, right in (*hunk.lines, (" ", None, None)):
        if tag == " ":
            lines += removed + added
            removed, added = [], []
            if left is not None:
                lines.append(f" {left}")
        if tag in "~-":
            removed.append(f"-{left}")
        if tag in "~+":
            added.append(f"+{right}")
    return "\n".join(printable(line) for line in lines) + "\n"
