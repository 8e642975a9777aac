"""What a user must decide before a migration can go on: read from the reports of its steps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torchferry.text import Text

_BLOCKER, _MISSING = "blocker", "missing"
_MOST_PLACES = 3
_BLOCKED = Text(
    "{title}: {places}. Replace it in the converted copy, or accept it: --accept {name}",
    "{title}：{places}。请在转换后的副本中替换，或接受：--accept {name}",
)
_NO_KERNEL = Text(
    "{name} has no kernel on the device and no known replacement ({places}). Rewrite the call in the converted copy, or "
    "accept it: --accept {name}",
    "设备没有 {name} 的 kernel，也没有已知的替代（{places}）。请在转换后的副本中改写该调用，或接受：--accept {name}",
)
_MORE = Text("{places} and {count} more", "{places} 等 {count} 处")


@dataclass(frozen=True)
class OpenDecision:
    """One cause that stops a migration until it is accepted or edited away."""

    name: str  # what --accept takes: a rule, an operator, a step
    places: tuple[str, ...]  # train.py:12
    text: Text


def open_blockers(
    findings: Mapping[str, Any], accepted: Collection[str], edited: Collection[str]
) -> list[OpenDecision]:
    """The blockers of a conversion, by cause, that are not accepted and not in a file that was edited since."""
    causes: dict[tuple[str, Text], list[str]] = {}
    for each in findings.get("findings", ()):
        is_decided = each["rule"] in accepted or each["path"] in edited
        if not is_decided and severity_of(each) == _BLOCKER:
            causes.setdefault((each["rule"], _title(each)), []).append(f"{each['path']}:{each['line']}")
    return [
        OpenDecision(
            rule, tuple(places), _BLOCKED.format(title=title, places=shown_places(places), name=rule)
        )
        for (rule, title), places in causes.items()
    ]


def severity_of(finding: Mapping[str, Any]) -> str:
    """What a finding asks of the user, as findings.json says it."""
    return str(finding.get("severity", ""))


def _title(finding: Mapping[str, Any]) -> Text:
    return Text(str(finding["title"]), str(finding["title_zh"]))


def missing_operators(
    readiness: Mapping[str, Any], accepted: Collection[str], edited: Collection[str]
) -> list[OpenDecision]:
    """Operators that the device lacks and for which nothing can be written instead."""
    places: dict[str, list[str]] = {}
    for use in readiness.get("uses", ()):
        judgement = (use.get("judgements") or [None])[0]
        if judgement and judgement["support"] == _MISSING and not judgement["advice"]:
            places.setdefault(use["operator"], []).append(use["place"])
    return [
        OpenDecision(name, tuple(found), _NO_KERNEL.format(name=name, places=shown_places(found)))
        for name, found in places.items()
        if name not in accepted and not all(_file(place) in edited for place in found)
    ]


def _file(place: str) -> str:
    return place.rpartition(":")[0]


def shown_places(places: Iterable[str]) -> Text:
    """The first places, and how many there are."""
    known = list(dict.fromkeys(filter(None, places)))
    first = ", ".join(known[:_MOST_PLACES])
    if len(known) <= _MOST_PLACES:
        return Text(first or "?", "、".join(known) or "?")
    shown = Text(first, "、".join(known[:_MOST_PLACES]))
    return Text(
        _MORE.en.format(places=shown.en, count=len(known) - _MOST_PLACES),
        _MORE.zh.format(places=shown.zh, count=len(known)),
    )
