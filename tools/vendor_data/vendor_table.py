"""Makes vendor.toml: names, limits, environment variables."""

from __future__ import annotations

import re

from vendor_data import card_facts, hand, limit_facts, toml
from vendor_data.facts import Facts, Json, first_name, known, source_rows
from vendor_data.op_table import newest_version

_EXTENSION_ROW = "bitsandbytes / Triton kernels / custom .cu extensions"


def vendor_toml(facts: Facts, name: str, fact_id: str) -> str:
    """The text of vendor.toml."""
    fact = facts.vendor(fact_id)
    # for a device that PyTorch has in tree, torch itself is the first source
    sources = sorted(source_rows(fact["source"]), key=lambda row: row["name"] != "torch")
    return (
        toml.HEADER
        + toml.pairs(_names(fact, name))
        + toml.pairs(_abilities(facts, fact, name, fact_id))
        + toml.table("dtypes", _dtypes(fact))
        + toml.table("env", {variable: _meaning(entry) for variable, entry in fact.get("env", {}).items()})
        + toml.table("env_map", env_map(fact, name))
        + toml.table("launch_env", {**hand.LAUNCH_ENV.get(name, {})})
        + toml.table("emulation", {**hand.EMULATION.get(name, {})})
        + _limits(facts, name, fact_id)
        + toml.tables("cards", card_facts.CARDS.get(name, []))
        + toml.tables("sources", [*sources, *limit_facts.SOURCES.get(name, [])])
    )


def _limits(facts: Facts, name: str, fact_id: str) -> str:
    version = newest_version(facts, fact_id)
    table: dict[str, toml.Value] = {"operator_version": version} if version else {}
    dtypes = limit_facts.DTYPES.get(name, {})
    parts = {f"dtypes.{dtype}": limit for dtype, limit in dtypes.items()}
    if name in limit_facts.LISTS_WHAT_WAS_TRIED:
        parts["dtypes.float64"] = {**parts["dtypes.float64"], "unlisted": _unlisted(facts, fact_id, "fp64")}
    parts |= {"sparse": limit_facts.SPARSE.get(name, {}), "saturation": limit_facts.SATURATION.get(name, {})}
    return toml.table("limits", {**table, **limit_facts.LIMITS.get(name, {})}) + "".join(
        toml.table(f"limits.{part}", values) for part, values in parts.items() if values
    )


def _unlisted(facts: Facts, fact_id: str, dtype: str) -> list[str]:
    """Operators for which every list of dtypes leaves one out, be it of the form that works in place."""
    names: dict[str, bool] = {}
    for name, lists in facts.table(f"ops/{fact_id}.json")["dtype_limits_by_base_name"].items():
        base = name.rstrip("_")
        names[base] = names.get(base, False) or any(dtype in str(each) for each in lists.values())
    return sorted(name for name, listed in names.items() if not listed)


def _names(fact: Json, name: str) -> dict[str, toml.Value]:
    fused = fact.get("fused_optimizers", {})
    return {
        "name": name,
        "company": fact["company"],
        "company_zh": hand.COMPANIES_ZH[name],
        "device_type": fact["device_type"],
        "plugin": fact["python_plugin"] or "",
        "torch_module": fact["torch_submodule"],
        "dist_backend": fact["dist_backend"],
        "visible_devices_env": fact["visible_devices_env"],
        "smi": known(fact.get("smi")),
        "tensor_method": fact["tensor_method"].strip(".()"),
        "is_attribute": fact["is_attr"],
        "amp_module": first_name(fact.get("amp_module")),
        "autocast_device_type": fact["autocast_device_type"],
        "amp_dtypes": [entry.split()[0] for entry in fact.get("amp_dtypes", [])],
        "fused_optimizer_module": known(fused.get("module")),
        "fused_optimizers": list(fused.get("names", [])),
    }


def _abilities(facts: Facts, fact: Json, name: str, fact_id: str) -> dict[str, toml.Value]:
    profiler = fact.get("profiler", {})
    row = next(
        row for row in facts.table("replacements.json")["replacements"] if row["cuda"] == _EXTENSION_ROW
    )
    return {
        "profiler_module": first_name(profiler.get("module")) or _profiler_by_api(facts, fact_id),
        "profiler_activity": _activity(profiler.get("activities")),
        "marker_module": first_name(profiler.get("marker")),
        "memory_format": known(fact.get("preferred_memory_format")),
        "channels_last": name in hand.PREFERS_CHANNELS_LAST,
        "data_parallel": fact.get("parallel", {}).get("DataParallel", "unknown"),
        "jit_script": hand.JIT_SCRIPT.get(name, ""),
        "jit_script_by_migration": name in hand.JIT_SCRIPT_BY_MIGRATION,
        "migrations": list(hand.MIGRATIONS.get(name, ())),
        "graphs": known(fact.get("graphs")),
        "apex": known(fact.get("apex")),
        "apex_initialize": hand.APEX_INITIALIZE.get(name, ""),
        "triton": known(fact.get("triton")) or hand.TRITON.get(name, ""),
        "extension": known(fact.get("extensions")) or known(row.get(fact_id)),
        "missing_op": known(fact.get("missing_op")),
        "oom_exception": first_name(fact.get("oom_exception")),
    }


def _activity(activities: Json) -> str:
    if not isinstance(activities, list):
        return ""
    others = [entry.split(".")[-1] for entry in activities if not entry.endswith(".CPU")]
    return others[0] if others else ""


def _profiler_by_api(facts: Facts, fact_id: str) -> str:
    """Where the table of APIs finds the vendor's profiler activity."""
    status = facts.table(f"apis/{fact_id}.json")["cuda"]["torch.profiler.ProfilerActivity.CUDA"][0]
    module, found, _ = status.removeprefix("renamed:").partition(".ProfilerActivity.")
    return module if found else ""


def _dtypes(fact: Json) -> dict[str, toml.Value]:
    limits: dict[str, toml.Value] = {}
    for dtype, limit in fact.get("dtypes", {}).items():
        if known(limit):
            names = ("complex64", "complex128") if dtype == "complex" else (dtype,)
            limits.update(dict.fromkeys(names, limit))
    for entry in fact.get("amp_dtypes", []):
        dtype, _, remark = entry.partition(" ")
        if remark:
            limits.setdefault(dtype, remark.strip("()"))
    return limits


def _meaning(entry: Json) -> str:
    remarks = [f"{part} {entry[part]}" for part in ("values", "default") if part in entry]
    return str(entry["meaning"]) + (f" ({', '.join(remarks)})" if remarks else "")


def env_map(fact: Json, name: str) -> dict[str, toml.Value]:
    """CUDA and NCCL variables whose counterpart is known, or known to be missing."""
    explicit = fact.get("env_map", {})
    wildcard = explicit.get("TORCH_NCCL_*", "")
    missing = set(re.findall(r"[A-Z][A-Z_]{5,}", wildcard.partition("(not ")[2]))
    by_meaning = hand.ENV_BY_MEANING.get(name, {})
    found: dict[str, toml.Value] = {}
    for variable in hand.CUDA_ENV:
        suffix = variable.removeprefix("TORCH_NCCL_")
        if variable in explicit:
            found[variable] = explicit[variable] or ""
        elif wildcard and suffix != variable:
            found[variable] = "" if suffix in missing else wildcard.partition("*")[0] + suffix
        elif variable == "CUDA_VISIBLE_DEVICES":
            found[variable] = fact["visible_devices_env"]
        elif variable == "NVIDIA_VISIBLE_DEVICES" and first_name(fact.get("container_env")).isupper():
            found[variable] = fact["container_env"]
        elif variable in by_meaning:
            found[variable] = by_meaning[variable]
        else:
            match = [guess for guess in _spellings(variable, fact) if guess in fact.get("env", {})]
            if match:
                found[variable] = match[0]
    return found


def _spellings(variable: str, fact: Json) -> list[str]:
    """The vendor's possible names for a variable; only those in the vendor's own list count."""
    backend = fact["dist_backend"].upper()
    if "NCCL" in variable:
        plain = variable.replace("NCCL", backend)
        return [plain, f"TORCH_{plain}", f"{backend}_{variable}"]
    tokens = [fact["device_type"].upper(), fact["visible_devices_env"].split("_")[0]]
    return [variable.replace("CUDA", token) for token in tokens]
