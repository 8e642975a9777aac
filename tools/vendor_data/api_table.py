"""Makes apis.toml: what became of each torch.cuda name."""

from __future__ import annotations

from vendor_data import toml
from vendor_data.facts import Facts, Json, source_rows

# Names outside the main table that programs use and that the vendors' support lists answer for.
_FURTHER = ("torch.backends.cuda.", "torch.backends.cudnn.", "torch.distributed.is_nccl_available")


def api_toml(facts: Facts, fact_id: str) -> str:
    """The text of apis.toml."""
    fact = facts.table(f"apis/{fact_id}.json")
    vendor = facts.vendor(fact_id)
    apis: dict[str, toml.Value] = {}
    basis: dict[str, list[str]] = {}
    for name, (status, why) in sorted({**_further(fact, vendor), **fact["cuda"]}.items()):
        apis[name] = _status(name, status, fact, vendor)
        if why != "none":
            basis.setdefault(why, []).append(name)
    lists = "".join(toml.long_list(why, basis[why]) for why in sorted(basis))
    return (
        toml.HEADER
        + f"complete = {toml.value(bool(fact.get('complete', True)))}\n"
        + "\n# same: the same name (under the vendor's module for torch.cuda.*), unsupported, unknown, or the new name"
        + toml.table("apis", apis)
        + "\n# How it is known -> names\n[basis]\n"
        + lists
        + toml.table("notes", _notes(fact))
        + toml.tables("sources", source_rows(fact["source"]))
    )


def natural_name(name: str, torch_module: str) -> str:
    """The name that `same` stands for."""
    if name.startswith("torch.cuda."):
        return torch_module + name.removeprefix("torch.cuda")
    return name


def _listed_name(name: str, fact: Json, vendor: Json) -> str:
    """The vendor's name in its own support list; torch_npu.npu is the same object as torch.npu."""
    listed = str(fact.get("native", {}).get(name, {}).get(vendor["device_type"], ""))
    inner = f"{vendor['python_plugin']}.{vendor['device_type']}."
    return f"{vendor['torch_submodule']}.{listed.removeprefix(inner)}" if listed.startswith(inner) else listed


def _status(name: str, status: str, fact: Json, vendor: Json) -> str:
    if status.startswith("renamed:"):
        return status.removeprefix("renamed:")
    # "same" in the facts means "supported": the vendor's list may still show another name for it
    listed = _listed_name(name, fact, vendor)
    if status == "same" and listed and listed != natural_name(name, vendor["torch_submodule"]):
        return listed
    return status


def _further(fact: Json, vendor: Json) -> dict[str, list[str]]:
    """Names that only the vendor's support list answers for."""
    found = {}
    for name, entry in fact.get("native", {}).items():
        if name.startswith(_FURTHER) and name not in fact["cuda"]:
            supported = entry.get("s", 0) == 1 or entry.get("hw", "none") != "none"
            found[name] = ["same" if supported else "unsupported", "vendor support list"]
    return found


def _notes(fact: Json) -> dict[str, toml.Value]:
    """Limits and observed behaviour, by torch.cuda name."""
    notes: dict[str, toml.Value] = {}
    for name, entry in sorted(fact.get("cuda_limits", {}).items()):
        remarks = [*entry.get("limits", [])]
        if entry.get("no_hw"):
            remarks.append("not on " + ", ".join(entry["no_hw"]))
        notes[name] = "; ".join(remarks)
    for name, entry in sorted(fact.get("native", {}).items()):
        if entry.get("limits") and (name in fact["cuda"] or name.startswith(_FURTHER)):
            notes.setdefault(name, "; ".join(entry["limits"]))
    for name, remark in fact.get("observed", {}).items():
        if name.startswith("torch.") and "(" not in name:
            notes[name] = remark
    return notes
