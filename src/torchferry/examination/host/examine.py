"""Runs every check: of the machine, and of the vendor's variables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchferry.examination.host import checks
from torchferry.examination.host.machine import Machine
from torchferry.report.checks import CheckResult, Command, Examination, Reach, Status, run_checks, worst_first
from torchferry.text import Text
from torchferry.vendors.host import Tuning, load_host
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor, vendor_names

# The vendor's variables: what is set, what each does, and what is recommended, by the vendor's data.

VARIABLE = "variable"
OPTION = "option"

_SET = Text("{value}", "{value}")
_UNSET = Text("not set", "未设置")
_UNSET_DEFAULT = Text("not set, so {default}", "未设置，即 {default}")
_UNSET_UNKNOWN = Text("not set; its default is not known", "未设置；默认值未知")
_OPTION = Text("set inside a program", "在程序中设置")
_OPTION_DEFAULT = Text("set inside a program, {default} by default", "在程序中设置，默认 {default}")
_WHAT = Text("{what}", "{what}")
_COST = Text("; {cost}", "；{cost}")
_RECOMMENDED = Text("; recommended: {value}", "；建议：{value}")
_NOT_JUDGED = Text("; what it does to speed is not known", "；对速度的影响未知")


def check_variables(
    vendor: Vendor, tuning: tuple[Tuning, ...], environment: Mapping[str, str]
) -> Iterator[CheckResult]:
    """A result for each variable and option that the data know, and for each other one of the vendor's that is set."""
    for entry in tuning:
        yield _option(entry) if entry.option else _variable(entry, environment.get(entry.name))
    known = {entry.name for entry in tuning if not entry.option}
    for name, meaning in vendor.env.items():
        if name in environment and name not in known:
            value = environment[name]
            why = Text(meaning, meaning)
            yield CheckResult(VARIABLE, name, Status.INFO, Text(value, value), _joined(why, _NOT_JUDGED))


def _variable(entry: Tuning, value: str | None) -> CheckResult:
    effective = entry.default if value is None else value
    status = _judged(entry, effective)
    commands = _commands(entry, value) if status in (Status.COSTS, Status.COULD) else ()
    return CheckResult(
        VARIABLE, entry.name, status, _found(entry, value), _why(entry), commands, entry.source
    )


def _judged(entry: Tuning, effective: str | None) -> Status:
    """By the patterns of the data; without any, or without a value to hold against them, it is a fact and no more."""
    if effective is None or not (entry.slow or entry.improvable):
        return Status.INFO
    if entry.slow and re.fullmatch(entry.slow, effective):
        return Status.COSTS
    if entry.improvable and re.fullmatch(entry.improvable, effective):
        return Status.COULD
    return Status.FINE


def _found(entry: Tuning, value: str | None) -> Text:
    if value is not None:
        return _SET.format(value=value)
    if entry.default is None:
        return _UNSET_UNKNOWN
    return _UNSET_DEFAULT.format(default=entry.default) if entry.default else _UNSET


def _why(entry: Tuning) -> Text:
    parts = [_WHAT.format(what=entry.what)]
    parts += [_COST.format(cost=entry.cost)] if entry.cost.en else []
    parts += [_RECOMMENDED.format(value=entry.recommended)] if entry.recommended else []
    return _joined(*parts)


def _joined(*parts: Text) -> Text:
    return Text("".join(part.en for part in parts), "".join(part.zh for part in parts))


def _commands(entry: Tuning, value: str | None) -> tuple[Command, ...]:
    if entry.recommended:
        return (Command(f"export {entry.name}={shlex.quote(entry.recommended)}", Reach.SHELL),)
    return (Command(f"unset {entry.name}", Reach.SHELL),) if value is not None else ()


def _option(entry: Tuning) -> CheckResult:
    found = _OPTION_DEFAULT.format(default=entry.default) if entry.default else _OPTION
    why = _joined(_why(entry), Text(f": {entry.option}", f"：{entry.option}"))
    return CheckResult(OPTION, entry.name, Status.UNSEEN, found, why, (), entry.source)


@dataclass(frozen=True)
class HostExamination(Examination):
    """What all checks say of the host."""

    vendor: str = ""  # whose variables were looked at; "": nobody's
    is_guess: bool = False  # the vendor was not named: its plugin is the only one that is installed


def examine(machine: Machine, vendor: Vendor | None, *, is_guess: bool = False) -> HostExamination:
    """All checks in turn."""
    results = list(run_checks(checks, machine))
    if vendor is not None:
        results += check_variables(vendor, load_host(Path(vendor.folder)).tuning, machine.environment)
    return HostExamination(worst_first(results), vendor.name if vendor else "", is_guess)


def installed_vendor(vendor_path: Sequence[Path]) -> Vendor | None:
    """The vendor whose plugin is installed, if there is exactly one."""
    from importlib.util import find_spec

    vendors = [get_vendor(name, vendor_path) for name in vendor_names(vendor_path)]
    found = [vendor for vendor in vendors if vendor.plugin and find_spec(vendor.plugin.split(".")[0])]
    return found[0] if len(found) == 1 else None
