"""`ferry explain` knows what the vendor's plugin says when something goes wrong: each error is provoked, then explained."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Collection
from functools import cache
from pathlib import Path

import pytest

from tests.emulate import plugin_errors
from tests.emulate.collectives.processes import run
from tests.emulate.error_rules import (
    BESIDE,
    BESIDE_BETWEEN_RANKS,
    ELSEWHERE,
    NOT_PROVOKED,
    OUTDONE,
    OUTDONE_BETWEEN_RANKS,
)
from tests.emulate.running import run_python
from tests.explanation.explaining import all_rules, cause, explained, ids
from torchferry.emulate import plugins
from torchferry.vendors.registry import get_vendor

PROGRAM = Path(plugin_errors.__file__).read_text("utf-8")
# A rule of its own for sorts of codes; a call into the toolkit that failed has its cause in the lines around it.
RULES_OF_CODES = {
    **dict.fromkeys(("PARAM", "TYPE", "VALUE"), "ascend.argument"),
    "NOT_SUPPORT": "ascend.feature",
}
CALLS = {"ACL", "HCCL", "GE"}
OF_THE_PROGRAM = "ERR99999"
# What goes wrong between two ranks -> the rule; those of a row are run by the same processes.
BETWEEN_RANKS = (
    {"absent": "ascend.hccl-connect", "counts": "ascend.hccl-arguments"},
    {"dtypes": "ascend.hccl-arguments"},
    {"operations": "ascend.hccl-arguments"},
    {"late": "ascend.hccl-notify"},
)
SOON = {"TORCHFERRY_EMULATE_CONNECT_TIMEOUT": "1", "HCCL_EXEC_TIMEOUT": "1"}

emulation = pytest.mark.usefixtures("emulation")


def test_every_rule_is_provoked_or_has_a_reason() -> None:
    provoked = {
        *(rule for cases in plugin_errors.ALL for rule in cases),
        *(rule for cases in BETWEEN_RANKS for rule in cases.values()),
        *ELSEWHERE,
    }
    outdone = (*OUTDONE.values(), *OUTDONE_BETWEEN_RANKS.values())
    left = [rule for rules in NOT_PROVOKED.values() for rule in rules]
    seen = provoked.union(BESIDE_BETWEEN_RANKS, *BESIDE.values(), *outdone)
    assert len(left) == len(set(left))
    assert seen & set(left) == set()
    known = {pattern.id for pattern in all_rules().patterns if pattern.id.startswith("ascend.")}
    assert known == {rule for rule in (*seen, *left) if rule.startswith("ascend.")}


@cache
def ended(sort: str) -> subprocess.CompletedProcess[str]:
    """The process that provokes a sort of errors."""
    done = run_python(PROGRAM, sort)
    assert done.returncode == 0, done.stderr
    return done


def found_by(sort: str) -> list[tuple[str, str, str]]:
    """Rule, case and text of each error; of codes module, code and line."""
    return [(one, name, text) for one, name, text in json.loads(ended(sort).stdout.splitlines()[-1])]


@emulation
@pytest.mark.parametrize("sort", ["device", "collectives", "codes"])
def test_every_error_has_its_cause(sort: str) -> None:
    raised = [one for one in found_by(sort) if "." in one[0]]
    found = [(rule, name, *ids(text)[:1]) for rule, name, text in raised]
    assert [one for one in found if one[0] != one[-1]] == []
    check_company([text for _, _, text in raised], BESIDE[sort], OUTDONE.get(sort, set()))


def check_company(texts: Collection[str], beside: set[str], outdone: set[str]) -> None:
    """Of all texts together: which rules stand beside the causes, and whose words are there and outdone."""
    told = {found for text in texts for found in ids(text)}
    assert beside <= told
    assert outdone & told == set()
    for pattern in all_rules().patterns:
        if pattern.id in outdone:
            words = "|".join([*filter(None, [pattern.regex]), *(rf"\b{code}\b" for code in pattern.codes)])
            assert any(re.search(words, line) for text in texts for line in text.splitlines()), pattern.id


@emulation
@pytest.mark.long
@pytest.mark.parametrize("cases", BETWEEN_RANKS, ids=" ".join)
def test_what_goes_wrong_between_ranks_has_its_cause(cases: dict[str, str], tmp_path: Path) -> None:
    """The log of rank 0, as the plugin leaves it: its watchdog ends the process."""
    first, _ = run([("failing_rank", str(rank), "2", str(tmp_path), *cases) for rank in range(2)], SOON)
    logs = dict(part.split("\n", 1) for part in f"\n{first.printed}".split("\ncase ")[1:])
    assert {name: cause(log) for name, log in logs.items()} == cases, first.printed
    for name, log in logs.items():
        beside = {"ascend.call-failed"} if name == "absent" else BESIDE_BETWEEN_RANKS
        check_company([log], beside, OUTDONE_BETWEEN_RANKS.get(name, set()))


@emulation
def test_what_nobody_waited_for_is_told_at_the_end() -> None:
    """The plugin warns, and the process ends with 0: it is no failure, but the first thing that is explained."""
    assert ids(ended("codes").stderr)[0] == "ascend.aicore-exception"


def test_an_exception_of_the_program_is_not_hidden_by_the_line_above_it() -> None:
    line = f"[ERROR] 2026-11-19-14:36:50 (PID:1, Device:-1, RankID:-1) {OF_THE_PROGRAM} UNKNOWN applicaiton exception\n"
    found = explained(
        f'{line}Traceback (most recent call last):\n  File "a.py", line 3, in f\nKeyError: "x"\n'
    )
    assert found.cause is not None and found.cause.text == 'KeyError: "x"'
    assert [each.id for each in found.ordered] == ["", "ascend.application"]


@emulation
def test_every_code_of_the_plugin_is_known() -> None:
    lines = [one for one in found_by("codes") if "." not in one[0]]
    assert len(lines) == 6 * 16
    for module, code, line in lines:
        number = re.findall(r"ERR\d{5}", line)[0]
        assert all_rules().code(number), (module, code, line)
        if code not in CALLS and number != OF_THE_PROGRAM:
            assert ids(f"RuntimeError: something\n{line}\n")[0] == RULES_OF_CODES.get(code, "ascend.code"), (
                line
            )


@emulation
def test_a_plugin_without_its_toolkit_is_explained() -> None:
    """Where the plugin is installed and CANN is not, every `import torch` fails."""
    folder = plugins.needed(get_vendor("ascend")).folder
    clean = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", "import torch"],
        env={**clean, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert cause(done.stderr) == "ascend.libhccl", done.stderr
