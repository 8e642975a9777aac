"""Devices that tests are parametrised with: converted together with the bodies that compare them."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import expression, rewritten

_BODY = "    if {name} == 'cuda' and not torch.cuda.is_available(): return\n    torch.ones(1, device={name})"


def _test(decorator: str, parameters: str = "device", name: str = "device") -> str:
    return f"@{decorator}\ndef test_it({parameters}):\n{_BODY.format(name=name)}"


@pytest.mark.parametrize(
    "source",
    [
        _test("pytest.mark.parametrize('device', ['cuda'])"),
        _test("pytest.mark.parametrize('device', [pytest.param('cuda', marks=pytest.mark.gpu)])"),
        _test("pytest.mark.parametrize(argnames='device', argvalues=('cuda:0',))"),
        _test("pytest.mark.parametrize(('dtype', 'device'), [(torch.half, 'cuda')])", "dtype, device"),
        _test("pytest.mark.parametrize('dtype, device', [pytest.param(1, 'cuda', id='a')])", "dtype, device"),
        _test("pytest.mark.parametrize('where', ['cuda'])", "where", "where"),
        _test("pytest.mark.parametrize('n, where', [(1, 'cuda')])", "n, where", "where"),
        _test("pytest.mark.parametrize('n, where', itertools.product([1], ['cuda']))", "n, where", "where"),
        _test("parameterized.expand([('cuda',)])", "self, device"),
        _test("parameterized.expand(['cuda'])", "self, where", "where"),
        _test("parameterized.expand([param(1, 'cuda')])", "self, n, where", "where"),
        _test("parameterized_class(('device',), [('cuda',)])"),
        "@pytest.fixture(params=['cuda'])\ndef device(request):\n    return request.param",
        "@pytest.fixture(params=['cuda'])\ndef where(request):\n    return torch.ones(1).to(request.param)",
        "CASES = ['cpu', pytest.param('cuda', marks=pytest.mark.gpu)]",
        "CASES = [('cuda', 1), ('cpu', 2)]",
        "CASES = [pytest.param('cuda', 1), pytest.param('cpu', 2)]",
        "for n, where in zip([1], ['cuda']):\n    torch.ones(n).to(where)",
        "if (kind, n) == ('cuda', 2) and kind != 'cpu':\n    torch.ones(1, device=kind)",
    ],
)
def test_devices(source: str) -> None:
    assert expression(source) == source.replace("cuda", "npu")


@pytest.mark.parametrize(
    "source",
    [
        "@pytest.mark.parametrize('mode, label', [('fast', 'cuda')])\ndef test_it(mode, label): print(label)",
        "@parameterized.expand([('cuda', 1)])\ndef test_it(self, label, n): print(label)",
        "@pytest.fixture(params=['cuda'])\ndef label(request): pass",
        "TABLE = [('cuda', 1), ('fast', 2)]",
    ],
)
def test_what_is_not_known_to_be_a_device_stays(source: str) -> None:
    assert expression(source) == source


def test_a_class_of_tests() -> None:
    source = """
        import torch
        @pytest.mark.parametrize("where", ["cuda"])
        class TestIt:
            def test_one(self, where):
                torch.ones(1).to(where)
        """
    assert '["npu"]' in rewritten(source)
