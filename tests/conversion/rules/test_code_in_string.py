"""TF113: Python code in strings."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import expression, said_of


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("print('torch.cuda.is_available()')", id="a message"),
        pytest.param("x = 'torch.cuda.init()'", id="a text that nobody runs"),
        pytest.param("eval('model.train()')", id="other code"),
        pytest.param("re.compile('cuda')", id="a pattern"),
        pytest.param("run(['-c', 'cuda.yaml'])", id="an option that is a file"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source
    assert said_of(source, rule="TF113") == []


@pytest.mark.parametrize(
    "code",
    [
        "eval({})",
        "exec({}, {{}})",
        "exec(compile({}, 'name', 'exec'))",
        "timeit.timeit({}, number=3)",
        "timeit.timeit('pass', setup={})",
        "subprocess.run([sys.executable, '-c', {}])",
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "'torch.cuda.is_available()'",
        "'y = x.cuda()'",
        "\"x.to('cuda')\"",
        "'''if x.is_cuda:\\n    pass'''",
        'f"torch.cuda.set_device({rank})"',
    ],
)
def test_code_that_is_run_is_reported(code: str, text: str) -> None:
    source = code.format(text)
    assert expression(source) == source
    assert said_of(source, rule="TF113") == [("TF113", "todo", text)]


def test_a_type_by_name_is_another_rules() -> None:
    assert expression("t = eval('torch.cuda.FloatTensor')") == "t = eval('torch.npu.FloatTensor')"
    assert said_of("t = eval('torch.cuda.FloatTensor')") == []
