"""TF401: environment variables of CUDA and NCCL."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, findings, said_of, vendor


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("CUDA_VISIBLE_DEVICES = '0'", id="a variable of that name"),
        pytest.param("# CUDA_VISIBLE_DEVICES", id="a comment"),
        pytest.param("'CUDA_VISIBLE_DEVICES'", id="text on its own"),
        pytest.param("'''sets CUDA_VISIBLE_DEVICES'''", id="a docstring"),
        pytest.param("print('set CUDA_VISIBLE_DEVICES first')", id="a sentence"),
        pytest.param("print('CUDA_VISIBLE_DEVICES')", id="a message"),
        pytest.param("log.info('CUDA_VISIBLE_DEVICES')", id="a log message"),
        pytest.param("raise RuntimeError('CUDA_VISIBLE_DEVICES')", id="an error"),
        pytest.param("parser.add_argument('--gpu', help='sets CUDA_VISIBLE_DEVICES')", id="a help text"),
        pytest.param("macros = [('WITH_CUDA', None)]", id="a macro"),
        pytest.param("flags = ['-D__CUDA_NO_HALF_OPERATORS__']", id="a compiler flag"),
        pytest.param("x = '__CUDA_ARCH__'", id="a symbol of C++"),
        pytest.param("x = 'MY_CUDA_HOME'", id="a longer name"),
        pytest.param("def f(CUDA_VISIBLE_DEVICES): pass", id="a parameter"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize(
    "source",
    [
        "os.environ['CUDA_VISIBLE_DEVICES'] = '0'",
        'os.environ["CUDA_VISIBLE_DEVICES"] = args.gpu',
        "v = os.environ.get('CUDA_VISIBLE_DEVICES', '')",
        "v = os.getenv('CUDA_VISIBLE_DEVICES')",
        "os.putenv('CUDA_VISIBLE_DEVICES', '1')",
        "os.environ.setdefault('CUDA_VISIBLE_DEVICES', '0')",
        "os.environ.update({'CUDA_VISIBLE_DEVICES': '0'})",
        "os.environ.update(CUDA_VISIBLE_DEVICES='0')",
        "env = dict(os.environ, CUDA_VISIBLE_DEVICES='1')",
        "ok = 'CUDA_VISIBLE_DEVICES' in os.environ",
        "del os.environ['CUDA_VISIBLE_DEVICES']",
        "monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '0')",
    ],
)
def test_visible_devices(name: str, source: str) -> None:
    after = source.replace("CUDA_VISIBLE_DEVICES", vendor(name).visible_devices_env)
    assert expression(source, name) == after
    assert said_of(source, name) == []


_VARIABLES = ["CUDA_LAUNCH_BLOCKING", "CUDA_HOME", "CUDA_DEVICE_ORDER", "PYTORCH_CUDA_ALLOC_CONF"]
_VARIABLES += [
    "CUBLAS_WORKSPACE_CONFIG",
    "NCCL_DEBUG",
    "NCCL_BLOCKING_WAIT",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
]


# The vendor's variable takes the same values; of any other the user must think.
_SAME_VALUES = {"CUDA_LAUNCH_BLOCKING", "PYTORCH_CUDA_ALLOC_CONF"}


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize("variable", _VARIABLES)
def test_others_by_the_vendors_table(name: str, variable: str) -> None:
    source = f"os.environ['{variable}'] = '1'"
    new = vendor(name).env_map.get(variable)
    if new and variable in _SAME_VALUES:
        assert expression(source, name) == f"os.environ['{new}'] = '1'"
        assert said_of(source, name) == []
    else:
        kind = "unsupported" if new == "" else "todo"
        assert expression(source, name) == source
        assert said_of(source, name) == [("TF401", kind, f"'{variable}'")]


def test_nccl_variables_are_reported_with_the_equivalent() -> None:
    (item,) = findings("import os\nos.environ['NCCL_BLOCKING_WAIT'] = '1'\n")
    assert "TORCH_HCCL_BLOCKING_WAIT" in item.message.en
    assert "TORCH_HCCL_BLOCKING_WAIT" in item.message.zh


@pytest.mark.parametrize(
    "source",
    [
        "os.system('CUDA_VISIBLE_DEVICES=0 python x.py')",
        "cmd = f'CUDA_VISIBLE_DEVICES={gpu} python x.py'",
        "cmd = 'NCCL_DEBUG=INFO torchrun x.py'",
        "cmd = 'CUDA_VISIBLE_DEVICES=%s python x.py' % gpu",
    ],
)
def test_command_lines_are_reported(source: str) -> None:
    assert expression(source) == source
    assert [(rule, kind) for rule, kind, _ in said_of(source)] == [("TF401", "todo")]


def test_portable_says_that_it_only_reaches_cuda() -> None:
    source = "os.environ['CUDA_VISIBLE_DEVICES'] = '0'"
    assert expression(source, "portable") == source
    assert said_of(source, "portable") == [("TF401", "info", "'CUDA_VISIBLE_DEVICES'")]
