"""The pages: their commands run and print what they show, both languages say the same, links and options exist."""

from __future__ import annotations

import ast
import ctypes
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
from dataclasses import replace
from functools import cache
from itertools import groupby, takewhile
from pathlib import Path
from typing import NamedTuple

import pytest
from tools import make_rule_docs, make_vendor_table
from tools.website.navigation import read_navigation

from tests.emulate.running import why_not
from torchferry.accuracy.file.writer import RecordWriter, StatisticsWriter, encoded_tensors
from torchferry.accuracy.model import ROW, Call, Kept, RecordHeader, TensorRecord, TensorRef
from torchferry.conversion.rule import all_rules
from torchferry.text import Language
from torchferry.vendors.registry import get_vendor

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(path.relative_to(ROOT / "docs/en").as_posix() for path in (ROOT / "docs/en").rglob("*.md"))
PAIRS = [("README.md", "README.zh.md"), *((f"docs/en/{page}", f"docs/zh/{page}") for page in PAGES)]
SINGLE = ["CHANGELOG.md", "CONTRIBUTING.md"]
ALL_PAGES = [*SINGLE, *(page for pair in PAIRS for page in pair)]
# Pages whose programs are run by `make test`; those of the others, which journeys and the demo run too, by test-all.
WHOLE = {
    "README.md",
    *(f"docs/en/{page}.md" for page in ("how-it-works/layer", "how-it-works/simulator", "troubleshooting")),
}

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMANDS = ("ferry", "ms_fmk_transplt", "torch_gpu2mlu")
_RUNNING = tuple(
    f"ferry {name}" for name in ("run", "prove", "ops", "record", "overflow", "watch", "profile")
)


class Block(NamedTuple):
    """A fenced block: the words of its info string, and its lines."""

    info: list[str]
    body: str

    @property
    def exit_code(self) -> int:
        return next((int(word[5:]) for word in self.info if word.startswith("exit=")), 0)

    def steps(self) -> list[tuple[str, list[str]]]:
        """(command, lines that it must print)"""
        found: list[tuple[str, list[str]]] = []
        for line in self.body.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                assert found, f"a block must begin with a command: {line!r}"
                found[-1][1].append(line)
        return found


def read(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def blocks(page: str) -> list[Block]:
    return [Block(match["info"].split(), match["body"]) for match in _FENCE.finditer(read(page))]


def shell_blocks(page: str) -> list[Block]:
    """Blocks with commands; a script that is shown as a file is none."""
    return [block for block in blocks(page) if {"console", "runnable", "emulated"} & set(block.info)]


def commands(page: str) -> list[str]:
    return [
        command for block in shell_blocks(page) for command, _ in block.steps() if "runnable" in block.info
    ]


class Step(NamedTuple):
    """A command, the lines that it must print, and how it must end."""

    command: str
    expected: list[str]
    exit_code: int


def _runnable_steps(page: str, mark: str = "runnable") -> list[Step]:
    return [
        Step(command, expected, block.exit_code)
        for block in shell_blocks(page)
        if mark in block.info
        for command, expected in block.steps()
    ]


def _runs_no_program(step: Step) -> bool:
    """Whether it starts no process that imports torch."""
    starts = "run|prove|ops|case|record|replay|compare|overflow|watch|profile|export|checkpoint"
    return not re.search(rf"\b(?:ferry (?:{starts})|python) ", step.command)


def _is_chinese(page: str) -> bool:
    return "zh" in page


def prose(page: str) -> str:
    return _FENCE.sub("", read(page))


@pytest.mark.parametrize("page", ALL_PAGES)
def test_commands_run_and_print_what_the_page_shows(page: str, tmp_path: Path) -> None:
    steps = _runnable_steps(page)
    _check_steps(steps if page in WHOLE else list(takewhile(_runs_no_program, steps)), page, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(
    "page",
    [
        page
        for page in ALL_PAGES
        if page not in WHOLE and not all(map(_runs_no_program, _runnable_steps(page)))
    ],
)
def test_pages_that_run_programs(page: str, tmp_path: Path) -> None:
    _check_steps(_runnable_steps(page), page, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in ALL_PAGES if _runnable_steps(page, "emulated")])
def test_what_runs_on_a_vendors_plugin(page: str, tmp_path: Path) -> None:
    if why_not():
        pytest.skip(why_not())
    _check_steps(_runnable_steps(page, "emulated"), page, tmp_path)


def _check_steps(steps: list[Step], page: str, folder: Path) -> None:
    if not steps:
        return
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    for step in steps:
        result = _run(step.command, folder, "zh" if _is_chinese(page) else "en")
        assert result.returncode == step.exit_code, f"$ {step.command}\n{result.stdout}"
        missing = _first_missing(step.expected, result.stdout)
        assert missing is None, f"$ {step.command}\ndoes not print: {missing}\n{result.stdout}"


def _run(command: str, folder: Path, language: Language) -> subprocess.CompletedProcess[str]:
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("LC_")},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TORCHFERRY_LANG": language,
        "OMP_NUM_THREADS": "1",
        "PYTHONUTF8": "1",
        "COLUMNS": "80",
    }
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=120,
    )


def _first_missing(expected: list[str], output: str) -> str | None:
    """The first line that the output does not have, in order; `...` stands for any text or for any lines. How wide a
    table's columns are depends on what is in them, so that blanks count once."""
    printed = (" ".join(line.split()) for line in output.splitlines())
    for line in expected:
        if line.strip() == "...":
            continue
        words = " ".join(line.split())
        pattern = re.compile(".*".join(re.escape(part.strip()) for part in words.split("...")) + r"\Z")
        if not any(pattern.match(actual) for actual in printed):
            return line
    return None


@pytest.mark.parametrize("page", ALL_PAGES)
def test_every_shell_block_is_run_or_says_why_not(page: str) -> None:
    for block in shell_blocks(page):
        if block.info[0] == "console":
            assert {"runnable", "setup", "emulated", "copied"} & set(block.info), (
                f"mark this block runnable, setup, emulated or copied:\n{block.body}"
            )
        if "setup" in block.info:
            allowed = ("make ", "pip ", "ferry --version", "ferry emulate setup")
            assert all(command.startswith(allowed) for command, _ in block.steps())


def test_both_languages_have_the_same_pages() -> None:
    chinese = sorted(
        path.relative_to(ROOT / "docs/zh").as_posix() for path in (ROOT / "docs/zh").rglob("*.md")
    )
    assert chinese == PAGES


@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_both_languages_have_the_same_headings_and_commands(english: str, chinese: str) -> None:
    levels = [re.findall(r"^(#+) ", prose(page), re.MULTILINE) for page in (english, chinese)]
    assert levels[0] == levels[1]
    assert commands(english) == commands(chinese)
    kinds = [[block.info for block in blocks(page)] for page in (english, chinese)]
    assert kinds[0] == kinds[1]
    rows = [len(re.findall(r"^\|", prose(page), re.MULTILINE)) for page in (english, chinese)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("page", ALL_PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith("https://"):
            continue
        assert "://" not in target, f"only https: {target}"
        file, _, heading = target.partition("#")
        path = (ROOT / page).parent / file if file else ROOT / page
        assert path.exists(), target
        assert not heading or heading in _anchors(path), target


def _anchors(page: Path) -> set[str]:
    """What GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", _FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_navigation_of_the_site_once() -> None:
    assert sorted(read_navigation().written()) == PAGES, "add the page to docs/navigation.toml"


@pytest.mark.parametrize("page", ALL_PAGES)
def test_options_exist(page: str) -> None:
    for command, option in _options_used(page):
        assert option in _options_of(command), f"{command} has no {option}"


def _options_used(page: str) -> list[tuple[str, str]]:
    # a command that is refused may have no such option
    blocks = [block for block in shell_blocks(page) if not block.exit_code]
    lines = [command for block in blocks for command, _ in block.steps()]
    lines += [text for text in re.findall(r"`([^`\n]+)`", prose(page)) if text.startswith(_COMMANDS)]
    found: list[tuple[str, str]] = []
    for line in lines:
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;>")
        lexer.whitespace_split = True
        for divides, words in groupby(lexer, key=lambda word: not word.strip("|&;>")):
            if not divides:
                found += _options_in(list(words))
    return found


def _options_in(words: list[str]) -> list[tuple[str, str]]:
    words = [word for word in words if "=" not in word or word.startswith("-")]
    if not words or words[0] not in _COMMANDS:
        return []
    name = words[0]
    if name == "ferry" and len(words) > 1 and not words[1].startswith("-"):
        name = f"ferry {words[1]}"
        if (
            name in ("ferry checkpoint", "ferry zoo", "ferry emulate") and len(words) > 2
        ):  # each of its actions has options of its own
            name = f"{name} {words[2]}"
    if name == "ferry migrate":
        words = words[: words.index("--") if "--" in words else None]
    if name in _RUNNING:
        words = words[: _end_of_own_words(words)]
    options = [word.partition("=")[0] for word in words[1:] if re.match(r"--?[a-z]", word)]
    return [(name, option) for option in options]


def _end_of_own_words(words: list[str]) -> int:
    """What follows the script, or `--`, is the program's."""
    for at, word in enumerate(words):
        is_value = words[at - 1] in ("--before", "--after")
        if word == "--" or (word.endswith(".py") and not is_value):
            return at
    return len(words)


@cache
def _options_of(command: str) -> frozenset[str]:
    output = _run(f"{command} --help", ROOT, "en").stdout
    of_torchrun = set(_TORCHRUN.split()) if "torchrun are accepted" in output else set()
    return frozenset(re.findall(r"(?<![\w-])--?[a-z][\w-]*", output)) | {"--help"} | of_torchrun


# What `--help` names together: "All options of torchrun are accepted and passed on".
_TORCHRUN = (
    "--nnodes --node-rank --master-addr --master-port --rdzv-backend --rdzv-endpoint --rdzv-id --rdzv-conf"
)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "command",
    [
        "ferry migrate", "ferry convert", "ferry scan", "ferry run", "ferry prove", "ferry ops", "ferry case", "ferry report",
        "ferry record", "ferry record convert", "ferry record info", "ferry record kernels", "ferry record cut", "ferry replay",
        "ferry compare", "ferry overflow", "ferry watch", "ferry profile", "ferry analyze", "ferry oplog", "ferry doctor", "ferry zoo new", "ferry zoo check", "ferry explain", "ferry bundle",
        "ferry export", "ferry emulate setup", "ferry emulate info", "ferry emulate remove", "ferry checkpoint info", "ferry checkpoint fix", "ms_fmk_transplt", "torch_gpu2mlu",
    ],
)  # fmt: skip
def test_every_option_is_explained(command: str, language: str) -> None:
    pages = {
        "ferry migrate": ["how-to/migrate"],
        "ferry convert": ["how-to/convert"],
        "ferry scan": ["how-to/convert", "formats/reports"],
        "ferry run": ["how-to/run"],
        "ferry prove": ["how-to/prove"],
        "ferry ops": ["how-to/operators"],
        "ferry case": ["how-to/cases"],
        "ferry report": ["formats/reports"],
        "ferry record": ["how-to/record"],
        "ferry record convert": ["how-to/record"],
        "ferry record info": ["how-to/record"],
        "ferry record kernels": ["how-to/record"],
        "ferry record cut": ["how-to/record"],
        "ferry bundle": ["how-to/bundle"],
        "ferry replay": ["how-to/record"],
        "ferry compare": ["how-to/compare"],
        "ferry overflow": ["how-to/overflow", "how-to/record"],
        "ferry watch": ["how-to/watch", "how-to/record"],
        "ferry profile": ["how-to/profile", "how-to/record"],
        "ferry analyze": ["how-to/analyze"],
        "ferry oplog": ["how-to/oplog"],
        "ferry doctor": ["how-to/doctor"],
        "ferry zoo new": ["how-to/zoo"],
        "ferry zoo check": ["how-to/zoo"],
        "ferry explain": ["how-to/explain"],
        "ferry export": ["how-to/export"],
        "ferry emulate setup": ["how-it-works/emulated"],
        "ferry emulate info": ["how-it-works/emulated"],
        "ferry emulate remove": ["how-it-works/emulated"],
        "ferry checkpoint info": ["how-to/checkpoint"],
        "ferry checkpoint fix": ["how-to/checkpoint"],
    }
    names = pages.get(command, ["how-to/drop-ins"])
    everywhere = ["how-to/migration-folder", "commands/terminals", "commands/command-line"]  # of all commands
    text = "".join(read(f"docs/{language}/{name}.md") for name in (*names, *everywhere))
    usage = _run(f"{command} --help", ROOT, "en").stdout.partition("Options:")[2]
    listed = re.findall(r"^  (?:-\w+(?: \S+)?, )?(--[\w-]+)", usage, re.MULTILINE)
    assert listed
    assert not [option for option in listed if option != "--help" and f"`{option}" not in text]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_rule_has_a_row(language: str) -> None:
    rows = re.findall(r"^\| `(TF\d+)` ", read(f"docs/{language}/rules/index.md"), re.MULTILINE)
    assert rows == [rule.id for rule in all_rules()]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_tables_made_from_the_code_are_current(language: Language) -> None:
    rules = make_rule_docs.page(language).read_text("utf-8")
    assert rules == make_rule_docs.with_table(rules, language), "run `make docs`"
    for name in make_vendor_table.PAGES[language]:
        assert read(name) == make_vendor_table.with_tables(read(name), language), "run `make docs`"


@pytest.mark.parametrize("page", ALL_PAGES)
def test_rules_that_pages_name_exist(page: str) -> None:
    known = {rule.id for rule in all_rules()} | {
        "TF499",
        "TF999",
    }  # made up, to show what an unknown one does
    assert set(re.findall(r"\bTF\d{3}\b", read(page))) <= known


def test_the_example_vendor_loads() -> None:
    vendor = get_vendor("acme", [ROOT / "examples/vendors"])
    assert vendor.dist_backend == "accl"
    assert vendor.api("torch.cuda.max_memory_allocated").name == "torch.acme.memory.peak"
    assert vendor.sources


def test_the_example_rules_are_those_of_the_page() -> None:
    text = (ROOT / "examples/rules/rules.json").read_text("utf-8")
    for language in ("en", "zh"):
        assert text in [block.body for block in blocks(f"docs/{language}/how-to/custom-rules.md")]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_example_of_a_rule_is_a_rule(language: str) -> None:
    (code,) = [
        block.body
        for block in blocks(f"docs/{language}/how-it-works/architecture.md")
        if block.info == ["python"]
    ]
    ast.parse(code)
    imports = "\n".join(line for line in code.splitlines() if line.startswith(("import ", "from ")))
    exec(compile(imports, "architecture.md", "exec"), {})


@pytest.mark.parametrize("language", ["en", "zh"])
def test_records_can_be_read_as_the_page_does(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_records(tmp_path)
    monkeypatch.chdir(tmp_path)
    tensors, statistics = [
        block.body
        for block in blocks(f"docs/{language}/formats/record-format.md")
        if block.info == ["python"]
    ]
    exec(compile(tensors, "record-format.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == [
        "train.py on cuda",
        "1 aten::sum.dim_IntList layer train.py:3",
        "    input/self float32 (2, 3) 2.5",
        "    output/output_0 float32 (2,) 7.5",
    ]
    exec(compile(statistics, "record-format.md", "exec"), {})
    assert capsys.readouterr().out == "1 loss  output/output_0 0.5\n"


def _write_records(folder: Path) -> None:
    """gpu.h5 with a call that is given a transposed matrix, run.h5 with the loss of a step."""
    transposed = [struct.pack("<6f", *range(6)), struct.pack("<2f", 6.0, 9.0)]
    header = RecordHeader(Kept.TENSORS, "train.py", "cuda", "2.13.0")
    record = RecordWriter(folder / "gpu.h5", header)
    given, made = map(record.append, transposed)
    inputs = (TensorRecord("input/self", "float32", (2, 3), (1, 2), "cuda:0", offset=given),)
    outputs = (TensorRecord("output/output_0", "float32", (2,), (1,), "cuda:0", offset=made),)
    arguments = (("self", TensorRef(0)), ("dim", (1,)))
    where = {"module": "layer", "place": "train.py:3"}
    call = Call(1, "aten::sum.dim_IntList", 1, "forward", "Model", **where, arguments=arguments)
    record.write(replace(call, inputs=inputs, outputs=outputs, results=TensorRef(0)))
    record.close()
    table = StatisticsWriter(folder / "run.h5", replace(header, kept=Kept.STATISTICS))
    number, address = table.row()
    ctypes.memmove(address, ROW.pack(1, 0, 0, 0, 0.5, 0.5, 0.5, 0.5, 7), ROW.size)
    loss = TensorRecord("output/output_0", "float32", (), (), "cuda:0")
    site = table.site("loss", "forward", "", "", "", "")
    table.call(1, site, table.signature((), encoded_tensors((), (loss,)), TensorRef(0)), [number])
    table.close()


@pytest.mark.parametrize("page", ALL_PAGES)
def test_pages_name_no_machine(page: str) -> None:
    assert not re.search(r"(?<![\w.])/(?:home|root|work|tmp|Users)/", read(page))
