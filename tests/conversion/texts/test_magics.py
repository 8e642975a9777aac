"""What is Python in a cell, and what IPython adds to it."""

from __future__ import annotations

import pytest

from torchferry.conversion.texts.magics import read_cell


def shown(source: str) -> str:
    return "\n".join(line.shown for line in read_cell(source).lines)


def foreign(source: str) -> list[tuple[str, str]]:
    """(name, text as its converter reads it)"""
    return [(item.name, item.readable(source[item.start : item.end])) for item in read_cell(source).foreign]


@pytest.mark.parametrize(
    "source",
    [
        "x = 1",
        "x = a \\\n  %b",
        "x = (a\n%b\n)",
        "s = '''\n!ls\n%time\nwhat?\n'''",
        "print('!', \"%%bash\")",
        "# !ls\n# what?",
        "await f()",
        "x != y",
        "",
    ],
)
def test_python_is_shown_as_it_is(source: str) -> None:
    assert shown(source) == source and not foreign(source)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("%matplotlib inline\nx = 1", "pass\nx = 1"),
        ("if a:\n    %cd ..\nelse:\n\t!ls", "if a:\n    pass\nelse:\n\tpass"),
        ("x = !ls\nself.x, d['a'] = !ls", "x = None\nself.x, d['a'] = None"),
        ("x = %timeit -o f()", "x = None"),
        ("!ls \\\n  -l\nx = 1", "pass\n\nx = 1"),
        ("%time x = f()", "x = f()"),
        ("%timeit -n10 -r 3 f()", "f()"),
        ("%lprun -f g g(1)", "g(1)"),
        ("%time f(", "pass"),
        ("%time", "pass"),
        ("%%time\nf()", "pass\nf()"),
        ("\n%%capture out\nf()", "\npass\nf()"),
        ("%%timeit x = 1\nf(x)", "x = 1\nf(x)"),
        ("?f\nf?\nf.g??\ntorch.cuda.*?", "pass\npass\npass\npass"),
        ("print('is it?')\n!ls", "print('is it?')\npass"),
        ("x = 1  # is it?\n!ls", "x = 1  # is it?\npass"),
        ("s = '''\n!ls\n'''\n!ls", "s = '''\n!ls\n'''\npass"),
        ("f(a # it's (\n  %b)\n!ls", "f(a # it's (\n  %b)\npass"),
        ("s = 'it\\'s'\n!ls", "s = 'it\\'s'\npass"),
        ("x = [\n!ls", ""),
    ],
)
def test_what_is_not_python_is_hidden(source: str, expected: str) -> None:
    assert shown(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("!ls -l", [("cell.sh", "ls -l")]),
        ("!!ls", [("cell.sh", "ls")]),
        ("x = !ls", [("cell.sh", "ls")]),
        ("%sx ls", [("cell.sh", "ls")]),
        ("!a \\\n  b\nx = 1", [("cell.sh", "a \\\n  b")]),
        ("%pip install x", [("cell.sh", "pip install x")]),
        ("pip install x", [("cell.sh", "pip install x")]),
        ("%env A=1\n%set_env A 1", [("cell.sh", "A=1"), ("cell.sh", "A=1")]),
        ("%env A=\n%env A", [("cell.sh", "A="), ("cell.sh", "echo $A")]),
        ("%env", []),
        ("%run a.py --b", [("cell.sh", "python a.py --b")]),
        ("%%bash -e\nls\npwd", [("cell.sh", "ls\npwd")]),
        ("%%script bash\nls", [("cell.sh", "ls")]),
        ("%%time\n%%sh\nls", [("cell.sh", "ls")]),
        ("%%writefile -a x/a.yaml\nb: 1", [("x/a.yaml", "b: 1")]),
        ("%%python3\nimport a", [("cell.py", "import a")]),
        ("%%shell\nls", [("cell.sh", "ls")]),
        ("%%cu\n__global__ void f() {}", [("cell.cu", "__global__ void f() {}")]),
        ("%%bash", []),
        ("%%html\n<b>", []),
        ("%load_ext a", []),
    ],
)
def test_commands_and_files_are_found(source: str, expected: list[tuple[str, str]]) -> None:
    assert foreign(source) == expected


def test_an_indented_cell_is_python_for_ipython() -> None:
    assert read_cell("  x = 1\n  y = 2").is_indented
    assert read_cell("  x = 1\n y = 2").problem


def test_a_cell_that_can_not_be_read_says_where() -> None:
    reading = read_cell("x = 1\n\ny = = 2")
    assert reading.problem_line == 2 and reading.problem
    assert not reading.lines
