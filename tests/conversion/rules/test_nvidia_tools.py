"""TF402: nvidia-smi in command strings."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, findings, said_of, vendor


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("# nvidia-smi", id="a comment"),
        pytest.param("'''run nvidia-smi'''", id="a docstring"),
        pytest.param("raise RuntimeError('run nvidia-smi')", id="an error"),
        pytest.param("nvidia_smi = 1", id="an identifier"),
        pytest.param("print('run nvidia-smi to see')", id="a message"),
        pytest.param("logger.warning('nvidia-smi is missing')", id="a log message"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source
    assert said_of(source, rule="TF402") == []


@pytest.mark.parametrize("name", (*VENDORS, "portable"))
@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("os.system('nvidia-smi')", "'nvidia-smi'"),
        ("subprocess.check_output(['nvidia-smi', '-q'])", "'nvidia-smi'"),
        (
            "cmd = 'nvidia-smi --query-gpu=memory.used --format=csv'",
            "'nvidia-smi --query-gpu=memory.used --format=csv'",
        ),
        ("shutil.which('nvidia-smi')", "'nvidia-smi'"),
    ],
)
def test_reported(name: str, source: str, place: str) -> None:
    assert expression(source, name) == source
    assert said_of(source, name) == [("TF402", "todo", place)]


@pytest.mark.parametrize("name", VENDORS)
def test_message_names_the_vendors_command(name: str) -> None:
    (item,) = findings("os.system('nvidia-smi')\n", name)
    assert f"`{vendor(name).smi}`" in item.message.en


@pytest.mark.parametrize("tool", ["nvcc", "nsys", "nvprof"])
def test_other_tools(tool: str) -> None:
    source = f"os.system('{tool} --version')"
    assert said_of(source) == [("TF402", "todo", f"'{tool} --version'")]


def test_inside_an_f_string() -> None:
    assert [(rule, kind) for rule, kind, _ in said_of("cmd = f'nvidia-smi -i {gpu}'")] == [("TF402", "todo")]
