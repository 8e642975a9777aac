"""TF603: torch.version.cuda."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, findings, said_of, vendor


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("v = torch.version.hip", id="another version"),
        pytest.param("v = torch.__version__", id="torch's own version"),
        pytest.param("v = mylib.version.cuda", id="another library's"),
        pytest.param("print('torch.version.cuda')", id="a message"),
        pytest.param("# torch.version.cuda", id="a comment"),
        pytest.param("def f(torch): return torch.version.cuda", id="a parameter called torch"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source
    assert said_of(source, rule="TF603") == []


@pytest.mark.parametrize("name", (*VENDORS, "portable"))
@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("v = torch.version.cuda", "torch.version.cuda"),
        ("ok = torch.version.cuda is not None", "torch.version.cuda"),
        ("major = torch.version.cuda.split('.')[0]", "torch.version.cuda"),
        ("from torch.version import cuda", "cuda"),
        ("from torch import version\nv = version.cuda", "version.cuda"),
        ("print(f'CUDA {torch.version.cuda}')", "torch.version.cuda"),
    ],
)
def test_reported(name: str, source: str, place: str) -> None:
    assert expression(source, name) == source
    assert said_of(source, name) == [("TF603", "todo", place)]


def test_message_says_what_to_ask_instead() -> None:
    for name in VENDORS:
        (item,) = findings("import torch\nv = torch.version.cuda\n", name)
        assert f"{vendor(name).torch_module}.is_available()" in item.message.en
