"""TF732: channels shuffled by a transpose, and the form that picks them by index."""

from __future__ import annotations

import importlib.util
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.conversion.rewriting import VENDORS, findings, rewritten

HEAD = "import torch\ndef f(x, groups):\n    b, c, h, w = x.size()\n"


def said(body: str, to: str = "ascend") -> list[tuple[int, str]]:
    """The lines of the function's body that are reported, with what to call there."""
    found = findings(HEAD + textwrap.indent(body, "    "), to, "similar", rule="TF732")
    return [(item.line - 3, re.search(r"affinity\.(.*\))`, which", item.do.en)[1]) for item in found]  # type: ignore[index]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("return x.view(b, groups, -1, w).transpose(1, 2).reshape(b, -1, w)", id="may be tokens"),
        pytest.param(
            "return x.view(b, groups, -1, h, w).transpose(1, 2).reshape(b, h, w, -1)",
            id="other dimensions are joined",
        ),
        pytest.param(
            "return x.view(b, groups, -1, h, w).transpose(1, 2).reshape(b, c, w, h)",
            id="height and width swapped",
        ),
        pytest.param(
            "return x.view(b, groups, -1, h, w).transpose(1, 3).reshape(b, -1, h, w)", id="other axes"
        ),
        pytest.param(
            "return x.view(b, groups, -1, h, w).permute(0, 2, 1, 4, 3).reshape(b, -1, h, w)",
            id="more is moved",
        ),
        pytest.param("return x.view(b, groups, -1, h, w).transpose(1, 2)", id="never joined"),
        pytest.param(
            "return x.view(b, groups, -1, h, w).transpose(1, 2).flatten(2, 3)", id="flattened elsewhere"
        ),
        pytest.param(
            "return x.view(groups, b, -1, h, w).transpose(1, 2).reshape(b, -1, h, w)", id="no batch"
        ),
        pytest.param(
            "return x.view(b, groups, c, h, -1).transpose(1, 2).reshape(b, c, h, -1)",
            id="sizes that are worked out",
        ),
        pytest.param(
            "x = x.view(b, groups, -1, h, w)\nx = x.transpose(1, 2)\nh = 3\nreturn x.reshape(b, -1, h, w)",
            id="a size changes in between",
        ),
        pytest.param(
            "x = x.view(b, groups, -1, h, w)\nif h:\n    x = x.relu()\nx = x.transpose(1, 2)\nreturn x.reshape(b, c, h, w)",
            id="a branch in between",
        ),
        pytest.param(
            "y = x.view(b, groups, -1, h, w)\ny, z = g(y)\ny = y.transpose(1, 2)\nreturn y.reshape(b, c, h, w)",
            id="another value in between",
        ),
        pytest.param("return torch.nn.functional.channel_shuffle(x, groups)", id="torch's own"),
    ],
)
def test_noop(body: str) -> None:
    assert said(body) == []


BY_VARIABLES = """
x = x.view(b, groups, c // groups, h, w)
x = torch.transpose(x, 1, 2).contiguous()
# flatten
x = x.view(b, c, h, w)
return x
"""
FORMS = [
    (BY_VARIABLES, 3),
    ("return x.view(b, groups, c // groups, h, w).permute(0, 2, 1, 3, 4).reshape(b, c, h, w)", 1),
    ("y = x.reshape((b, groups, -1, h, w))\ny = y.transpose(2, 1)\nreturn y.flatten(1, 2)", 2),
    ("return x.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)", 1),
    (
        "x = x.view(x.size(0), groups, -1, h, w)\nx = x.transpose(1, 2)\nx = x.contiguous()\n"
        "return x.view(x.size(0), -1, h, w)",
        2,
    ),
]


@pytest.mark.parametrize(("body", "line"), FORMS)
@pytest.mark.parametrize("to", [*VENDORS, "portable"])
def test_reported_and_left(to: str, body: str, line: int) -> None:
    assert said(body, to) == [(line, "channel_shuffle(x, groups)")]
    source = HEAD + textwrap.indent(body, "    ")
    assert rewritten(source, to, "similar") == source


def test_groups_that_are_worked_out() -> None:
    body = "return x.view(b, -1, 4, h, w).transpose(1, 2).flatten(1, 2)"
    assert said(body) == [(1, "channel_shuffle(x, x.shape[1] // 4)")]


def test_not_without_the_option() -> None:
    assert findings(HEAD + textwrap.indent(BY_VARIABLES, "    "), rule="TF732") == []


@pytest.mark.parametrize(("body", "line"), FORMS)
def test_the_advice_computes_the_same(body: str, line: int) -> None:
    import torch

    from torchferry.perf import affinity

    names: dict[str, Any] = {}
    exec(HEAD + textwrap.indent(body, "    "), names)
    x = torch.randn(2, 12, 3, 5)
    for groups in (2, 3):
        advised = eval(f"affinity.{said(body)[0][1]}", {"affinity": affinity, "x": x, "groups": groups})
        assert torch.equal(names["f"](x, groups), advised)


def test_in_torchvisions_shufflenet() -> None:
    spec = importlib.util.find_spec("torchvision")
    assert spec is not None and spec.origin is not None
    source = (Path(spec.origin).parent / "models" / "shufflenetv2.py").read_text("utf-8")
    assert [item.before for item in findings(source, "ascend", "similar", rule="TF732")] == [
        "torch.transpose(x, 1, 2)"
    ]
