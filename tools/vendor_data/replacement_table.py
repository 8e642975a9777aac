"""Makes replacements.toml: what to use instead of a CUDA-only library or function."""

from __future__ import annotations

from vendor_data import hand, toml
from vendor_data.facts import Facts, Json, first_name, known, names_of, source_row, words


def replacement_toml(facts: Facts, name: str, fact_id: str) -> str:
    """The text of replacements.toml."""
    fact = facts.table("replacements.json")
    rows: list[dict[str, toml.Value]] = []
    cited: list[str] = []
    for entry in fact["replacements"]:
        if entry["cuda"] not in hand.REPLACEMENT_NAMES:
            raise SystemExit(f"replacements.json: {entry['cuda']!r} is new; add it to REPLACEMENT_NAMES")
        names = hand.REPLACEMENT_NAMES[entry["cuda"]]
        rows += [_row(facts, cuda, entry, name, fact_id) for cuda in names]
        if names and fact_id in entry:
            cited += [cite for cite in names_of(entry["source"]) if hand.SOURCE_VENDOR.get(cite) == name]
    for cuda, what in hand.FURTHER_NAMES.items():
        smi = known(facts.vendor(fact_id).get("smi"))
        use = f"{smi} (command line)" if what == "smi" and smi else ""
        rows.append({"cuda": cuda, "use": hand.FURTHER_OF_VENDOR.get((name, cuda), use)})
    rows.sort(key=lambda row: str(row["cuda"]))
    # what works on every device is plain torch
    torch = {"name": "torch", "version": facts.table("index.json")["torch"], "path": "names under torch.*"}
    sources = [source_row(fact["source"][cite]) for cite in sorted(set(cited))] + [torch]
    return toml.HEADER + toml.tables("replacements", rows) + toml.tables("sources", sources)


def _row(facts: Facts, cuda: str, entry: Json, name: str, fact_id: str) -> dict[str, toml.Value]:
    use = words(entry.get(fact_id, entry.get("any", "")))
    triton = known(facts.vendor(fact_id).get("triton")) or hand.TRITON.get(name, "")
    if cuda == "triton" and first_name(triton):
        use = triton
    automatic = hand.AUTOMATIC_OF_VENDOR.get((name, cuda), hand.AUTOMATIC.get(cuda, ""))
    if automatic.startswith(use):
        use = automatic
    elif automatic and automatic.rsplit(".", 1)[-1] not in use:
        use = f"{automatic}, or {use}"
    if automatic in hand.CAVEATS:
        use += f"; {hand.CAVEATS[automatic]}"
    row: dict[str, toml.Value] = {"cuda": cuda, "use": use}
    if automatic:
        row["automatic"] = automatic
    if automatic in hand.SAME_ARGUMENTS:
        row["same_arguments"] = True
    return row
