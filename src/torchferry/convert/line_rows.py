"""Lines of an old and a new text side by side."""

from __future__ import annotations

from difflib import SequenceMatcher

Row = tuple[str, str, str]  # tag, old, new; the tag is " ", "~" changed, "+" added, "-" removed


def matched_rows(old: list[str], new: list[str]) -> list[Row]:
    """Every line of both, those that belong together in one row."""
    rows: list[Row] = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            rows += [(" ", line, line) for line in old[a:b]]
        else:
            rows += _changed_rows(old[a:b], new[c:d])
    return rows


def _changed_rows(old: list[str], new: list[str]) -> list[Row]:
    """Pairs from the top, or from the bottom where the last lines are the ones that are alike."""
    paired = min(len(old), len(new))
    pairs_at_end = (
        paired > 0 and len(old) != len(new) and _likeness(old[-1], new[-1]) > _likeness(old[0], new[0])
    )
    skip_old, skip_new = (len(old) - paired, len(new) - paired) if pairs_at_end else (0, 0)
    pairs: list[Row] = [
        ("~", left, right) for left, right in zip(old[skip_old:], new[skip_new:], strict=False)
    ]
    alone: list[Row] = [("-", line, "") for line in (old[:skip_old] if pairs_at_end else old[paired:])]
    alone += [("+", "", line) for line in (new[:skip_new] if pairs_at_end else new[paired:])]
    return [*alone, *pairs] if pairs_at_end else [*pairs, *alone]


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).quick_ratio()
