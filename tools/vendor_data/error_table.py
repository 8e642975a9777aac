"""Makes errors.toml: message patterns with cause and remedy, and the vendor's error codes."""

from __future__ import annotations

from vendor_data import toml
from vendor_data.facts import Facts, Json, names_of, source_row


def error_toml(facts: Facts, name: str, fact_id: str) -> str:
    """The text of errors.toml."""
    fact = facts.table("errors.json")
    rows: list[dict[str, toml.Value]] = []
    cited: set[str] = set()
    for entry in _ordered(fact["patterns"], fact_id):
        cited.update(names_of(entry["source"]))
        rows.append(
            {
                "regex": entry["regex"],
                "class": entry["class"],
                "cause": entry["cause"],
                "remedy": entry["remedy"],
                "rank": entry.get("rank", 1),
                "any_vendor": entry["vendor"] == "any",
            }
        )
    codes = _codes(fact, fact_id)
    if codes:
        cited.add(fact["acl_codes_source"])
    sources = [source_row(fact["source"][cite]) for cite in sorted(cited) if cite in fact["source"]]
    return (
        toml.HEADER
        + "# Patterns are Python regular expressions, in the order in which to try them.\n"
        + toml.tables("errors", rows)
        + toml.table("codes", codes)
        + toml.tables("sources", sources)
    )


def _ordered(patterns: list[Json], fact_id: str) -> list[Json]:
    """By rank, and among equals the vendor's own before the common ones (errors.json, order)."""
    own = [entry for entry in patterns if entry["vendor"] in (fact_id, "any")]
    return sorted(own, key=lambda entry: (entry.get("rank", 1), entry["vendor"] == "any"))


def _codes(fact: Json, fact_id: str) -> dict[str, toml.Value]:
    modules, kinds = fact.get(f"{fact_id}_err_modules", {}), fact.get(f"{fact_id}_err_kinds", {})
    if not modules:
        return {}
    codes: dict[str, toml.Value] = {**fact["acl_codes"], **fact[f"{fact_id}_hccl_codes"]}
    for module, part in modules.items():
        codes.update({f"ERR{module}{kind}": f"{part}: {meaning}" for kind, meaning in kinds.items()})
    return codes
