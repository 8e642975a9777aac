"""Whatever stands as an argument, and wherever the call stands: the result is Python, and stays as it is."""

from __future__ import annotations

import ast
import random

import pytest

from tests.conversion.rewriting import VENDORS, run, target
from torchferry.conversion.similar.signature import Parameter, parameters_of
from torchferry.vendors.similar import Similar, load_similar

ARGUMENTS = (
    "x", "self.x", "f(x)", "(x)", "(f(x))", "x + 1", "-x", "not x", "x if c else y", "lambda z: z", "x[i + 1]", "x[1:]",
    "(x, y)", "{'a': x}", "'s#tr'", "f'{x}'", "x.cuda()", "torch.device('cuda')", "x\n      + y", "f(\n  x,  # note\n )",
    "1", "-1", "2.0", "None", "True", "x  # c\n", "(w := x)", "[q for q in x]", "x or y", "*x", "**x", "x.y\n   .z()",
)  # fmt: skip
PLACES = (
    "y = {}", "y = {}.foo[0]", "y = -{} ** 2", "if {}: pass", "y = [{} for q in r]", "print({}, {})", "y = a.b({}).c",
    "def g(v={}): pass", "x[{}] = 1", "{}", "@{}\ndef h(): pass", "async def g():\n    return {}",
    "try:\n    {}\nfinally: pass", "y = (\n    {}\n)", "y = lambda: {}",
)  # fmt: skip
HEADS = ("import torch\n", "import torch\nimport torch.nn.functional as F\n", "", "import torch as t\n")


def _arguments(parameters: tuple[Parameter, ...], draw: random.Random) -> list[str]:
    found: list[str] = []
    by_keyword = False
    for parameter in parameters:
        if parameter.default is not None and draw.random() < 0.6:
            by_keyword = True
            continue
        is_default = parameter.default is not None and draw.random() < 0.4
        value = str(parameter.default) if is_default else draw.choice(ARGUMENTS)
        by_keyword = by_keyword or parameter.by_keyword_only or value.startswith("*") or draw.random() < 0.3
        is_named = by_keyword and not value.startswith("*")
        found.append(f"{parameter.name}={value}" if is_named else value)
    return found


def _program(entry: Similar, draw: random.Random) -> str:
    module, _, last = entry.cuda.removesuffix(".apply").rpartition(".")
    load, name = draw.choice(
        (
            (f"from {module} import {last}", last),
            (f"import {module.partition('.')[0]}", f"{module}.{last}"),
            (f"from {module} import {last} as zz", "zz"),
            (f"import {module} as mm", f"mm.{last}"),
        )
    )
    arguments = _arguments(parameters_of(entry.signature), draw)
    between = draw.choice((", ", ",\n      ", ",  # note\n      "))
    ending = draw.choice(("", ",", "\n", ",\n")) if arguments else ""
    call = f"{name}{'.apply' * entry.cuda.endswith('.apply')}({between.join(arguments)}{ending})"
    text = f"{draw.choice(HEADS)}{load}\n{draw.choice(PLACES).replace('{}', call)}\n"
    return text.replace("\n", draw.choice(("\n", "\n", "\r\n")))


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize("to", [*VENDORS, "portable"])
def test_any_arguments(to: str) -> None:
    """`run` fails if the result does not parse, or if a second conversion would change it."""
    draw = random.Random(20)
    entries = load_similar(target(to).vendor.folder)
    programs = [program for _ in range(250) if _is_python(program := _program(draw.choice(entries), draw))]
    changed = [program for program in programs if run(program, to, "similar").new_text is not None]
    assert len(changed) > 60
