"""Rule files on the command line: of ferry, and of the drop-in for ms_fmk_transplt."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import ferry, make, one_line, run
from torchferry.conversion.custom.json_format import load_custom_rules
from torchferry.vendors.registry import vendor_names

ROOT = Path(__file__).resolve().parents[3]
SOURCE = "import a\na.f(1)\n"
RENAME = '[[rule]]\nmatch = "a.f"\nrename = "a.g"\n'
SECOND = '{"rules": {"ArgsModifyRule": [{"func_name": "g", "arg_idx": 0, "arg_new": "2"}]}}'


def test_several_files(tmp_path: Path) -> None:
    project = make(tmp_path / "p", main=SOURCE)
    files = make(tmp_path / "r", **{"one.toml": RENAME, "two.JSON": SECOND})
    out = tmp_path / "out"
    result = ferry(
        "convert", project, "-o", out, "--rules", files / "one.toml", "--rules", files / "two.JSON"
    )
    assert result.returncode == 0, result.stderr
    assert (out / "main.py").read_text() == "import a\na.g(2)\n"
    again = ferry("convert", out, "--check", "--rules", files / "one.toml", "--rules", files / "two.JSON")
    assert again.returncode == 0, again.stdout


def test_one_of_the_users_rules_can_be_left_out(tmp_path: Path) -> None:
    project = make(tmp_path / "p", main=SOURCE)
    files = make(tmp_path / "r", **{"one.toml": RENAME})
    given = ["convert", project, "--rules", files / "one.toml"]
    assert ferry(*given, "--check").returncode == 1
    assert ferry(*given, "--check", "--ignore", "USER3").returncode == 0


def test_in_several_processes(tmp_path: Path) -> None:
    rules = '[[rule]]\nmatch = "a.f"\nwrap = "torch.abs({call})"\narguments.replace = {0 = "{value} + 1"}\n'
    text = SOURCE + "#" * 400_000 + "\n"
    project = make(tmp_path / "p", **{f"m{number}": text for number in range(9)})
    files = make(tmp_path / "r", **{"r.toml": rules})
    result = ferry("convert", project, "-o", tmp_path / "out", "-j", "2", "--rules", files / "r.toml")
    assert result.returncode == 0, result.stderr
    converted = (tmp_path / "out" / "m8.py").read_text()
    assert converted.startswith("import a\nimport torch\ntorch.abs(a.f(1 + 1))\n")


def test_every_mistake_has_a_line_of_its_own(tmp_path: Path) -> None:
    project = make(tmp_path / "p", main=SOURCE)
    files = make(
        tmp_path / "r",
        **{"bad.toml": '[[rule]]\nmatch = 1\n[[rule]]\nmatch = "a.f"\nvendors = ["asend"]\nrename = "b"\n'},
    )
    result = ferry("scan", project, "--rules", files / "bad.toml")
    assert (result.returncode, result.stdout) == (2, "")
    first, second = result.stderr.splitlines()
    assert first == f"ferry: {files}/bad.toml:2: rule.match: expected a string, found 1"
    assert second.startswith(
        f'ferry: {files}/bad.toml:5: rule.vendors: unknown vendor "asend"; allowed are ascend,'
    )


@pytest.mark.parametrize("name", ["rules.yaml", "rules"])
def test_another_suffix(tmp_path: Path, name: str) -> None:
    project = make(tmp_path / "p", main=SOURCE)
    (tmp_path / name).write_text(SECOND)
    one_line(
        ferry("scan", project, "--rules", tmp_path / name),
        f"{name}: unknown kind of rule file; it must end in .json or .toml",
    )


@pytest.mark.parametrize(("name", "rules"), [("r.toml", RENAME), ("r.txt", SECOND.replace('"g"', '"f"'))])
def test_the_drop_in_takes_both_formats(tmp_path: Path, name: str, rules: str) -> None:
    project = make(tmp_path / "net", main=SOURCE)
    (tmp_path / name).write_text(rules)
    result = run("ms_fmk_transplt", "-i", project, "-o", tmp_path, "-r", tmp_path / name)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "net_msft" / "main.py").read_text() in ("import a\na.g(1)\n", "import a\na.f(2)\n")


def test_the_example_is_that_of_the_page() -> None:
    example = ROOT / "examples/rules/my_rules.toml"
    assert len(load_custom_rules(example, vendors=vendor_names()).rules) == 5
    for language in ("en", "zh"):
        assert f"```toml\n{example.read_text('utf-8')}```" in (
            ROOT / f"docs/{language}/how-to/custom-rules.md"
        ).read_text("utf-8")
