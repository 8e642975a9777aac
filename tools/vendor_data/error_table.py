"""Makes errors.toml: rules for messages with cause and remedy, and the vendor's error codes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vendor_data import toml
from vendor_data.error_codes import CHINESE
from vendor_data.error_rule import Rule
from vendor_data.errors_ascend import ASCEND, CODE_FORMS
from vendor_data.errors_ascend_cann import ASCEND_CANN
from vendor_data.errors_ascend_guide import ASCEND_GUIDE
from vendor_data.errors_ascend_more import ASCEND_MORE
from vendor_data.errors_cambricon import CAMBRICON
from vendor_data.errors_cuda import CUDA
from vendor_data.errors_network import NETWORK
from vendor_data.errors_others import INTEL, MOORE_THREADS, TECORIGIN
from vendor_data.errors_process import PROCESS
from vendor_data.errors_python import PYTHON
from vendor_data.errors_pytorch_guide import PYTORCH_GUIDE
from vendor_data.errors_torch import TORCH
from vendor_data.facts import Facts, Json, names_of, source_row

RULES: dict[str, tuple[Rule, ...]] = {
    "any": (*PYTORCH_GUIDE, *CUDA, *PYTHON, *PROCESS, *NETWORK, *TORCH),
    "ascend": (*ASCEND_GUIDE, *ASCEND, *ASCEND_CANN, *ASCEND_MORE),
    "cambricon": CAMBRICON,
    "moorethreads": MOORE_THREADS,
    "tecorigin": TECORIGIN,
    "intel": INTEL,
}
_CODE_FORMS = {"ascend": CODE_FORMS}
_HEADER = (
    "# Patterns are Python regular expressions. {name} in a text is the pattern's group of that name.\n"
    '# A rule also holds for its codes; the code "*" is every one that no other rule names.\n'
)


def error_toml(facts: Facts, name: str, fact_id: str) -> str:
    """The text of errors.toml; "any" is the file that holds for all vendors."""
    fact = facts.table("errors.json")
    rules = sorted(RULES.get(name, ()), key=lambda rule: rule.rank)
    stood_for = [_facts_of(rule, fact["patterns"]) for rule in rules]
    rows = [_row(rule, entries) for rule, entries in zip(rules, stood_for, strict=True)]
    codes = _codes(fact, fact_id)
    cited = {cite for entries in stood_for for entry in entries for cite in names_of(entry["source"])}
    if codes:
        cited.add(fact["acl_codes_source"])
    sources = [source_row(fact["source"][cite]) for cite in sorted(cited) if cite in fact["source"]]
    hand_written = [
        {"name": source} for source in dict.fromkeys(rule.source for rule in rules if rule.source)
    ]
    forms = _CODE_FORMS.get(name)
    return (
        toml.HEADER
        + _HEADER
        + (toml.long_list("code_forms", forms) if forms else "")
        + toml.tables("errors", rows)
        + toml.table("codes", codes)
        + toml.table("codes_zh", {code: _in_chinese(str(meaning)) for code, meaning in codes.items()})
        + toml.tables("sources", [*sources, *hand_written])
    )


def check_coverage(facts: Facts) -> None:
    """Every pattern of the facts has a rule; else the tables are not made."""
    rules = [rule for table in RULES.values() for rule in table]
    known = {pattern for rule in rules for pattern in (rule.regex, *rule.facts)}
    missing = [
        entry["regex"] for entry in facts.table("errors.json")["patterns"] if entry["regex"] not in known
    ]
    unknown = set(_all_facts(rules)) - {entry["regex"] for entry in facts.table("errors.json")["patterns"]}
    if missing or unknown:
        raise SystemExit(
            f"errors.json: no rule for {missing}; rules name facts that are not there: {sorted(unknown)}"
        )


def _all_facts(rules: Iterable[Rule]) -> Iterator[str]:
    for rule in rules:
        yield from rule.facts


def _facts_of(rule: Rule, patterns: list[Json]) -> list[Json]:
    return [entry for entry in patterns if entry["regex"] in (rule.regex, *rule.facts)]


def _row(rule: Rule, entries: list[Json]) -> dict[str, toml.Value]:
    known_from = ", ".join(dict.fromkeys(cite for entry in entries for cite in names_of(entry["source"])))
    fields: dict[str, toml.Value] = {
        "id": rule.id,
        "regex": rule.regex,
        "frames": rule.frames,
        "codes": list(rule.codes),
        "class": rule.kind,
        "effect": rule.effect,
        "cause": rule.cause,
        "cause_zh": rule.cause_zh,
        "remedy": rule.remedy,
        "remedy_zh": rule.remedy_zh,
        "late": rule.late,
        "rank": rule.rank,
        "source": rule.source or known_from,
    }
    return {key: value for key, value in fields.items() if value not in ("", [])}


def _codes(fact: Json, fact_id: str) -> dict[str, toml.Value]:
    modules, kinds = fact.get(f"{fact_id}_err_modules", {}), fact.get(f"{fact_id}_err_kinds", {})
    if not modules:
        return {}
    codes: dict[str, toml.Value] = {**fact["acl_codes"], **fact[f"{fact_id}_hccl_codes"]}
    for module, part in modules.items():
        codes.update({f"ERR{module}{kind}": f"{part}: {meaning}" for kind, meaning in kinds.items()})
    return codes


def _in_chinese(meaning: str) -> str:
    part, colon, rest = meaning.partition(": ")
    return f"{CHINESE[part]}：{CHINESE[rest]}" if colon else CHINESE[meaning]
