"""Makes host.toml: variables and options that matter for speed, and how the vendor's host log is read."""

from __future__ import annotations

from vendor_data import host_log_facts, toml
from vendor_data.facts import Facts, Json
from vendor_data.tuning import Tuning
from vendor_data.tuning_facts import TUNING
from vendor_data.weight_formats import WEIGHT_FORMATS, WeightFormats


def host_toml(facts: Facts, name: str, fact_id: str) -> str:
    """The text of host.toml."""
    env = facts.vendor(fact_id).get("env", {})
    entries = TUNING[name]
    cited = dict.fromkeys(entry.source for entry in entries)
    log = host_log_facts.HOST_LOGS.get(name)
    sources = [{"name": source} for source in cited]
    return (
        toml.HEADER
        + "# `slow` and `improvable` are patterns that a whole value must match.\n"
        + toml.tables("tuning", [_row(entry, env.get(entry.name, {})) for entry in entries])
        + (_log_tables(log) if log else "")
        + _weight_formats(WEIGHT_FORMATS.get(name))
        + toml.tables("sources", [*sources, *(log.sources if log else ())])
    )


def _weight_formats(formats: WeightFormats | None) -> str:
    if formats is None:
        return ""
    plain = {"cast": formats.cast, "source": formats.source}
    return toml.table("weight_formats", plain) + toml.table("weight_formats.modules", formats.modules)


def _row(entry: Tuning, fact: Json) -> dict[str, toml.Value]:
    # an option may share its name with a variable; the facts speak of the variable
    known = {} if entry.option else fact
    default = entry.default if entry.default is not None else known.get("default")
    fields = {
        "name": entry.name,
        "option": entry.option,
        "values": known.get("values", ""),
        "recommended": entry.recommended,
        "slow": entry.slow,
        "improvable": entry.improvable,
        "what": entry.what,
        "what_zh": entry.what_zh,
        "cost": entry.cost,
        "cost_zh": entry.cost_zh,
        "source": entry.source,
    }
    row: dict[str, toml.Value] = {key: value for key, value in fields.items() if value}
    if default is not None:
        row["default"] = str(default)
    return row


def _log_tables(log: host_log_facts.HostLogFacts) -> str:
    return (
        toml.table("host_log", log.table)
        + toml.table("host_log.dtypes", {**log.dtypes})
        + toml.table("host_log.formats", {**log.formats})
    )
