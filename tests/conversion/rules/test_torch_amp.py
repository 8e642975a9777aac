"""TF301: torch.cuda.amp where the target uses torch.amp."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, rewritten, said_of, vendor

_TORCH_AMP = [name for name in VENDORS if vendor(name).amp_module == "torch.amp"]
_OWN_AMP = [name for name in VENDORS if vendor(name).amp_module != "torch.amp"]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("# torch.cuda.amp.autocast()", id="a comment"),
        pytest.param("print('torch.cuda.amp.autocast()')", id="a message"),
        pytest.param("with autocast(): pass", id="the user's own autocast"),
        pytest.param("from mylib import autocast\nwith autocast(): pass", id="another library's"),
        pytest.param("def f(torch): torch.cuda.amp.autocast()", id="a parameter called torch"),
        pytest.param("with torch.autocast('cpu'): pass", id="the CPU"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source, _TORCH_AMP[0]) == source


@pytest.mark.parametrize("name", _TORCH_AMP)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("with torch.cuda.amp.autocast(): pass", 'with torch.amp.autocast("{}"): pass'),
        ("with torch.cuda.amp.autocast( ): pass", 'with torch.amp.autocast("{}" ): pass'),
        ("with torch.cuda.amp.autocast(enabled=a): pass", 'with torch.amp.autocast("{}", enabled=a): pass'),
        ("with torch.cuda.amp.autocast(a): pass", 'with torch.amp.autocast("{}", enabled=a): pass'),
        (
            "with torch.cuda.amp.autocast(a, b): pass",
            'with torch.amp.autocast("{}", enabled=a, dtype=b): pass',
        ),
        (
            "with torch.cuda.amp.autocast(\n    a,\n): pass",
            'with torch.amp.autocast("{}", \n    enabled=a,\n): pass',
        ),
        ("s = torch.cuda.amp.GradScaler()", 's = torch.amp.GradScaler("{}")'),
        ("s = torch.cuda.amp.GradScaler(enabled=a)", 's = torch.amp.GradScaler("{}", enabled=a)'),
        ("s = torch.cuda.amp.GradScaler(2.0)", 's = torch.amp.GradScaler("{}", init_scale=2.0)'),
        ("@torch.cuda.amp.autocast()\ndef f(): pass", '@torch.amp.autocast("{}")\ndef f(): pass'),
        (
            "@torch.cuda.amp.custom_fwd\ndef f(): pass",
            '@torch.amp.custom_fwd(device_type="{}")\ndef f(): pass',
        ),
        (
            "@torch.cuda.amp.custom_fwd(cast_inputs=t)\ndef f(): pass",
            '@torch.amp.custom_fwd(cast_inputs=t, device_type="{}")\ndef f(): pass',
        ),
        (
            "@torch.cuda.amp.custom_bwd\ndef f(): pass",
            '@torch.amp.custom_bwd(device_type="{}")\ndef f(): pass',
        ),
    ],
)
def test_is_told_the_device(name: str, before: str, after: str) -> None:
    assert expression(before, name) == after.format(vendor(name).autocast_device_type)


@pytest.mark.parametrize("name", _TORCH_AMP)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from torch.cuda.amp import autocast\nautocast()\n",
            'from torch.amp import autocast\nautocast("{}")\n',
        ),
        (
            "from torch.cuda.amp import autocast as ac\nac()\n",
            'from torch.amp import autocast as ac\nac("{}")\n',
        ),
        ("from torch.cuda import amp\namp.autocast()\n", 'from torch import amp\namp.autocast("{}")\n'),
        (
            "import torch.cuda.amp as amp\namp.GradScaler()\n",
            'import torch.amp as amp\namp.GradScaler("{}")\n',
        ),
    ],
)
def test_imports(name: str, before: str, after: str) -> None:
    assert rewritten(before, name) == after.format(vendor(name).autocast_device_type)


@pytest.mark.parametrize("name", _OWN_AMP)
def test_a_vendor_with_its_own_amp_module_is_not_told(name: str) -> None:
    module = vendor(name).amp_module
    assert (
        expression("with torch.cuda.amp.autocast(True): pass", name) == f"with {module}.autocast(True): pass"
    )
    assert expression("s = torch.cuda.amp.GradScaler()", name) == f"s = {module}.GradScaler()"


def test_one_that_is_not_called_is_reported() -> None:
    source = "c = torch.cuda.amp.autocast if amp else nullcontext"
    assert said_of(source, "portable") == [("TF301", "todo", "torch.cuda.amp.autocast")]


def test_arguments_by_star_do_not_spoil_the_file() -> None:
    source = "with torch.cuda.amp.autocast(*a): pass\nx = x.cuda()"
    assert expression(source, "portable").endswith("x = x.to(DEVICE_TYPE)")


def test_a_decorator_that_is_given_its_function() -> None:
    before = "f = torch.cuda.amp.custom_fwd(g, cast_inputs=torch.float32)"
    after = 'f = torch.amp.custom_fwd(g, cast_inputs=torch.float32, device_type="xpu")'
    assert expression(before, "intel") == after


@pytest.mark.parametrize("quote", ["'", '"'])
def test_inside_of_an_f_string_the_other_quotes_are_written(quote: str) -> None:
    source = f"x = f{quote}{{torch.cuda.amp.autocast(enabled=True)}}{quote}"
    other = "'" if quote == '"' else '"'
    for name in VENDORS:
        text = expression(source, name)
        compile(text, name, "exec")
        assert "cuda" not in text
    assert f"torch.amp.autocast({other}xpu{other}, enabled=True)" in expression(source, "intel")
