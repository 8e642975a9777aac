"""Makes ops.txt: aten overloads with a device kernel, by adapter version."""

from __future__ import annotations

import re

from vendor_data import hand, toml
from vendor_data.facts import Facts, Json, source_rows

_FORMAT = (
    "# One operator per line: aten name, adapter versions that have it, ~KIND when only for tensors of that\n"
    "# kind, = and the only dtypes that its first tensor may have, | and a limit in words. An operator that is not\n"
    "# listed has no kernel if complete, else is unknown; of other libraries than aten only what is listed is known.\n"
)


def op_text(facts: Facts, fact_id: str) -> str:
    """The text of ops.txt."""
    fact = facts.table(f"ops/{fact_id}.json")
    head = toml.HEADER + _FORMAT
    if not fact:
        return head + "# complete: no\n# note: no list of kernels is known\n"
    lines = _reported(fact) if "works" in fact else _registered(fact)
    head += f"# complete: {'yes' if fact['complete'] else 'no'}\n# versions: {_axis(fact, lines)}\n"
    for row in source_rows(fact["source"]):
        head += f"# source: {row['name']} | {row['version']} | {row['path']}".rstrip() + "\n"
    return head + "".join(f"{line}\n" for line in sorted(lines))


def newest_version(facts: Facts, fact_id: str) -> str:
    """The newest adapter version of which the registration table is known; "" when none is."""
    fact = facts.table(f"ops/{fact_id}.json")
    return _axis(fact, _registered(fact)).split()[-1] if fact and "works" not in fact else ""


def has_kernel(facts: Facts, fact_id: str, op: str) -> bool | None:
    """Whether the newest version has an operator, in any overload unless one is named; None when it is not known."""
    fact = facts.table(f"ops/{fact_id}.json")
    if not fact or not fact["complete"]:
        return None
    newest = newest_version(facts, fact_id)
    names = {line.split()[0] for line in _registered(fact) if newest in line.split()[1:]}
    return op in names if "." in op else any(name.partition(".")[0] == op for name in names)


def _axis(fact: Json, lines: list[str]) -> str:
    if "works" in fact:
        return "of the adapter"
    return " ".join(_ordered({token for line in lines for token in line.split()[1:] if token[0] not in "~="}))


def _ordered(versions: set[str]) -> list[str]:
    return sorted(versions, key=lambda version: [int(part) for part in version.split(".")])


def _registered(fact: Json) -> list[str]:
    """Lines for a vendor whose registration table is public."""
    wheels = [key.rsplit("_", 1)[1] for key in fact["counts"] if key.startswith("aten_in_wheel_")]
    branches = [key.rsplit("_", 1)[1] for key in fact["counts"] if re.fullmatch(r"aten_\d+\.\d+", key)]
    single = re.findall(r"\d+\.\d+", fact["version_axis"])[:1]
    lines = []
    for name, entry in fact["ops"].items():
        versions = entry.get("wheels", entry.get("v", wheels or branches or single))
        lines_of = _ordered({".".join(version.split(".")[:2]) for version in versions})
        if lines_of:
            lines.append(" ".join([name, *lines_of, *_kinds(name, entry), *_dtypes(fact, name)]))
    for name, entry in fact.get("custom_ops", {}).items():
        if name.startswith(hand.LIBRARIES_WITH_OPERATORS):
            lines.append(" ".join([name, *_ordered(set(entry.get("v", branches)))]))
    return lines


def _dtypes(fact: Json, name: str) -> list[str]:
    """The dtypes that an operator is confined to: where the table comes from checks that raise, not from a list of
    what was tried (Ascend's) or of what is computed without a cast (Cambricon's, which converts the others)."""
    if "dtype_source" not in fact:
        return []
    allowed = fact["dtype_limits_by_base_name"].get(name.partition(".")[0])
    return ["=" + ",".join(hand.DTYPES[dtype] for dtype in allowed)] if isinstance(allowed, list) else []


def _kinds(name: str, entry: Json) -> list[str]:
    """The sorts of tensor to which a kernel is confined."""
    if entry.get("quantized_only"):
        return ["~quantized"]
    if entry.get("sparse_only") or name in hand.SPARSE_OPS:
        return ["~sparse"]
    if entry.get("dense") is False:
        return sorted({"~" + re.split(r"MUSA|Tensor|Csr", key)[0].lower() for key in entry["keys"]})
    return []


def _reported(fact: Json) -> list[str]:
    """Lines for a vendor of which only reports are known: names without overload."""
    versions: dict[str, set[str]] = {}
    limits: dict[str, list[str]] = {}
    for entry in fact["works"]:
        text = hand.WORKS_IN_PROSE.get(entry["ops"], entry["ops"])
        for item in text.split(", "):
            name, _, remark = item.replace("(", " (").partition(" (")
            versions.setdefault(name.strip(), set()).add(entry["torch_sdaa"])
            if remark:
                limits.setdefault(name.strip(), []).append(f"reported working: {remark.strip(')')}")
    for entry in fact["limits"]:
        parts = [f"{entry['condition']}: {entry['effect']}", entry.get("workaround", "")]
        text = "; ".join(part for part in parts if part) + f" (torch_sdaa {entry['torch_sdaa']})"
        for name in hand.LIMITED_OPS[entry["op"]]:
            versions.setdefault(name, set())
            limits.setdefault(name, []).append(text)
    return [
        " ".join([name, *sorted(found)]) + (f" | {' / '.join(limits[name])}" if name in limits else "")
        for name, found in versions.items()
    ]
