"""Shows the result of an audit: a table, a list of what is wrong, a sample to read by hand."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from .model import CLASSES, MUST, Site, Verdict
from .text import decode, split_lines


def table(verdicts: Iterable[Verdict]) -> str:
    """Counts per class and outcome, and the share of must-sites that were changed."""
    counts = Counter((item.group, item.ok, item.outcome) for item in verdicts)
    rows = [f"{'class':<8} {'':<6} {'outcome':<28} {'count':>8}"]
    order = [*CLASSES, "line", "file"]
    for (group, ok, outcome), count in sorted(
        counts.items(), key=lambda item: (order.index(item[0][0]), not item[0][1], item[0][2])
    ):
        rows.append(f"{group:<8} {'ok' if ok else 'WRONG':<6} {outcome:<28} {count:>8,}")
    must = sum(count for (group, _, _), count in counts.items() if group == MUST)
    changed = sum(
        count
        for (group, _, outcome), count in counts.items()
        if group == MUST and outcome.startswith("changed")
    )
    todo = sum(
        count
        for (group, _, outcome), count in counts.items()
        if group == MUST and outcome == "reported (todo)"
    )
    wrong = sum(count for (_, ok, _), count in counts.items() if not ok)
    if must:
        judged = changed + todo + counts[(MUST, False, "silent")]
        rows.append(
            f"must-sites: {must:,}; changed {changed:,}; of those a vendor form exists for: {changed / max(1, judged):.2%}"
        )
    rows.append(f"wrong: {wrong:,}")
    return "\n".join(rows)


def write_wrong(verdicts: Iterable[Verdict], path: Path) -> None:
    """Writes every wrong verdict as one JSON object a line."""
    with path.open("w", encoding="utf-8") as out:
        for item in verdicts:
            if not item.ok:
                out.write(json.dumps(asdict(item), ensure_ascii=False) + "\n")


def sample(items: list[tuple[Site, str]], count: int, seed: int) -> list[tuple[Site, str]]:
    """A random choice with equal shares for the classes, as far as they have enough."""
    chooser = random.Random(seed)
    groups = {cls: [item for item in items if item[0].call.cls == cls] for cls in CLASSES}
    chosen: list[tuple[Site, str]] = []
    left = count
    for place, cls in enumerate(sorted(CLASSES, key=lambda name: len(groups[name]))):
        share = min(len(groups[cls]), left // (len(CLASSES) - place))
        chosen += chooser.sample(groups[cls], share)
        left -= share
    return chosen


def write_sample(chosen: list[tuple[Site, str]], root: Path, path: Path, context: int = 1) -> None:
    """Writes a sample as TSV, with an empty column for the reader's verdict."""
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, delimiter="\t", lineterminator="\n")
        writer.writerow(["where", "word", "class", "reason", "outcome", "verdict", "context"])
        for site, outcome in chosen:
            lines = split_lines(decode((root / site.path).read_bytes()))
            around = lines[max(0, site.line - 1 - context) : site.line + context]
            shown = " ⏎ ".join(line.strip() for line in around)[:400]
            writer.writerow([site.where, site.text, site.call.cls, site.call.reason, outcome, "", shown])


def classes(sites: Iterable[Site]) -> str:
    """Counts per class and reason."""
    counts = Counter((site.call.cls, site.call.reason) for site in sites)
    rows: list[str] = []
    for cls in CLASSES:
        total = sum(count for (name, _), count in counts.items() if name == cls)
        rows.append(f"{cls:<8} {total:>8,}")
        ranked = sorted(
            ((count, reason) for (name, reason), count in counts.items() if name == cls), reverse=True
        )
        rows += [f"         {count:>8,}  {reason}" for count, reason in ranked]
    return "\n".join(rows)
