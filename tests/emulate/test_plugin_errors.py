"""`ferry explain` knows what the vendor's plugin says when something goes wrong: each error is provoked, then explained."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.emulate.running import answer
from tests.explanation.explaining import all_rules, cause, explained
from torchferry.emulate import plugins
from torchferry.vendors.registry import get_vendor

pytestmark = pytest.mark.usefixtures("emulation")

PROGRAM = Path(__file__).with_name("plugin_errors.py").read_text("utf-8")
# A rule of its own for sorts of codes; a call into the toolkit that failed has its cause in the lines around it.
RULES_OF_CODES = {
    **dict.fromkeys(("PARAM", "TYPE", "VALUE"), "ascend.argument"),
    "NOT_SUPPORT": "ascend.feature",
}
CALLS = {"ACL", "HCCL", "GE"}


@pytest.mark.parametrize("sort", ["device", "collectives"])
def test_every_error_has_its_cause(sort: str) -> None:
    raised: list[tuple[str, str, str]] = answer(PROGRAM, sort)
    found = [[rule, name, cause(text)] for rule, name, text in raised]
    assert [one for one in found if one[0] != one[2]] == []


def test_every_code_of_the_plugin_is_known() -> None:
    lines: list[tuple[str, str, str]] = answer(PROGRAM, "codes")
    assert len(lines) == 6 * 16
    for module, code, line in lines:
        (finding,) = explained(f"RuntimeError: something\n{line}\n").ordered[:1]
        number = finding.groups.get("code") or next(word for word in line.split() if word.startswith("ERR"))
        assert all_rules().code(number), (module, code, line)
        if code not in CALLS:
            assert finding.id == RULES_OF_CODES.get(code, "ascend.code"), (module, code, line)


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
