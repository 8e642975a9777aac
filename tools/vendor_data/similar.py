"""Makes similar.toml: calls with an equivalent, as far as the facts give a reason to replace them for a vendor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vendor_data import hand, toml
from vendor_data.facts import Facts, Row, names_of, source_row, source_rows
from vendor_data.op_table import has_kernel, newest_version

Pair = tuple[str, str]  # English, Chinese

_FALLS_BACK = "aten::{op} has no kernel there and runs on the CPU"
_FALLS_BACK_ZH = "aten::{op} 没有设备算子，会回退到 CPU"
_RAISES = "aten::{op} has no kernel there and raises"
_RAISES_ZH = "aten::{op} 没有设备算子，会报错"


@dataclass(frozen=True)
class Entry:
    """One row, and the fact that gives the reason for it: a row of replacements.json, an operator, an API's limit."""

    cuda: str
    use: str = ""
    vendors: tuple[str, ...] = ()  # vendor folders; empty: every one, and code for any device
    fact: str = ""  # the `cuda` text of the row in replacements.json
    missing: str = ""  # only where this aten operator has no kernel; with | several that would do
    limit: str = ""  # "API limit" of the vendor's list
    known: str = ""  # something else it is known from
    also: tuple[str, ...] = ()  # other names of the same function
    when: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    exact: bool = False
    keeps_gradients: bool = False
    kind: str = ""
    why: Pair = ("", "")
    remark: Pair = ("", "")


def similar_toml(facts: Facts, name: str, fact_id: str, entries: tuple[Entry, ...]) -> str:
    """The text of a vendor's similar.toml; of code for any device if there is no vendor."""
    own = [entry for entry in entries if _applies(facts, entry, name, fact_id)]
    rows = [_row(facts, entry, fact_id) for entry in own]
    sources = _sources(facts, own, name, fact_id)
    return toml.HEADER + toml.tables("similar", rows) + toml.tables("sources", sources)


def _sources(facts: Facts, entries: list[Entry], name: str, fact_id: str) -> list[Row]:
    """The repositories and packages behind the entries; what works on every device is plain torch."""
    fact = facts.table("replacements.json")
    cited = {entry.fact for entry in entries}
    names = {cite for row in fact["replacements"] if row["cuda"] in cited for cite in names_of(row["source"])}
    found = [
        source_row(fact["source"][cite]) for cite in sorted(names) if hand.SOURCE_VENDOR.get(cite) == name
    ]
    if any(entry.missing for entry in entries):
        found += source_rows(facts.table(f"ops/{fact_id}.json")["source"])
    if any(entry.limit for entry in entries):
        found += source_rows(facts.table(f"apis/{fact_id}.json")["source"])[:1]
    found.append(
        {"name": "torch", "version": facts.table("index.json")["torch"], "path": "names under torch.*"}
    )
    return [row for number, row in enumerate(found) if row not in found[:number]]


def _applies(facts: Facts, entry: Entry, name: str, fact_id: str) -> bool:
    if entry.vendors and name not in entry.vendors:
        return False
    if entry.missing:
        names = entry.missing.split("|")
        return bool(fact_id) and all(has_kernel(facts, fact_id, name) is False for name in names)
    return True


def _row(facts: Facts, entry: Entry, fact_id: str) -> dict[str, toml.Value]:
    why, why_zh = _missing_words(facts, entry, fact_id) if entry.missing else entry.why
    row: dict[str, toml.Value] = {"cuda": entry.cuda, "use": entry.use, "kind": _kind(facts, entry, fact_id)}
    row |= {"also": list(entry.also), "when": list(entry.when), "takes": list(entry.takes)}
    row |= {"ignored": list(entry.ignored)}
    row |= {"why": why, "why_zh": why_zh, "remark": entry.remark[0], "remark_zh": entry.remark[1]}
    row["source"] = _source(facts, entry, fact_id)
    filled = {key: value for key, value in row.items() if value}
    if entry.keeps_gradients:
        filled["keeps_gradients"] = True
    return filled | ({"exact": entry.exact} if entry.use else {})


def _missing_words(facts: Facts, entry: Entry, fact_id: str) -> Pair:
    english, chinese = (_RAISES, _RAISES_ZH) if _raises(facts, fact_id) else (_FALLS_BACK, _FALLS_BACK_ZH)
    operator = entry.missing.partition("|")[0]
    return english.format(op=operator), chinese.format(op=operator)


def _raises(facts: Facts, fact_id: str) -> bool:
    """Whether an operator without a kernel raises; elsewhere it falls back to the CPU."""
    return "raises" in facts.table(f"ops/{fact_id}.json")["fallback"]["default"]


def _kind(facts: Facts, entry: Entry, fact_id: str) -> str:
    if entry.use or entry.kind:
        return entry.kind
    return "risk" if entry.missing and not _raises(facts, fact_id) else "unsupported"


def _source(facts: Facts, entry: Entry, fact_id: str) -> str:
    """Where the reason is known from; stops the tool if the facts no longer say so."""
    kinds: tuple[tuple[str, Callable[[Facts, str, str], str]], ...] = (
        (entry.fact, _of_replacement),
        (entry.missing, _of_operator),
        (entry.limit, _of_limit),
    )
    found = [find(facts, text, fact_id) for text, find in kinds if text]
    if not (found or entry.known):
        raise SystemExit(f"similar entries: {entry.cuda!r} names no source")
    return "; ".join([*found, *([entry.known] if entry.known else [])])


def _of_replacement(facts: Facts, text: str, _fact_id: str) -> str:
    fact = facts.table("replacements.json")
    row = next((row for row in fact["replacements"] if row["cuda"] == text), None)
    if row is None:
        raise SystemExit(f"replacements.json: no row {text!r}; correct the similar entries")
    return f"replacements: {text} ({', '.join(names_of(row['source']))})"


def _of_operator(facts: Facts, operator: str, fact_id: str) -> str:
    return f"operator table of adapter version {newest_version(facts, fact_id)}: no {operator}"


def _of_limit(facts: Facts, text: str, fact_id: str) -> str:
    api, _, limit = text.partition(" ")
    native = facts.table(f"apis/{fact_id}.json")["native"] | facts.table(f"apis/{fact_id}.json").get(
        "torchvision", {}
    )
    entry = native.get(api)
    said = (entry or {}).get("limits", []) if isinstance(entry, dict) else []
    listed = limit in said if limit else entry is not None and not _is_supported(entry)
    if not listed:
        raise SystemExit(f"apis/{fact_id}.json: {text!r} is not said there; correct the similar entries")
    return f"API list: {api} {limit or 'unsupported'}"


def _is_supported(entry: dict[str, object] | int) -> bool:
    if isinstance(entry, int):
        return entry == 1
    return entry.get("s", 0) == 1 or entry.get("hw", "none") != "none"
