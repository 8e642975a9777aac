"""Help, errors and old spellings of all commands: one grammar, in two languages."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import TRAIN
from torchferry.cli import ms_fmk_transplt, msaccucmp, msprobe, torch_gpu2mlu
from torchferry.cli.commands import COMMANDS
from torchferry.cli.grammar import Parser, close_to
from torchferry.cli.help_page import help_page
from torchferry.cli.layout import width_of, wrapped
from torchferry.cli.main import main, parser_of
from torchferry.cli.overview import overview
from torchferry.text import Text

DROP_INS = {
    module._parser().command: module._parser
    for module in (ms_fmk_transplt, msaccucmp, msprobe, torch_gpu2mlu)
}
DOCS = Path(__file__).parents[2] / "docs"
CHINESE = re.compile(r"[一-鿿]")


def with_those_below(parser: Parser) -> Iterator[Parser]:
    yield parser
    yield from parser.below.values()


def every_parser() -> dict[str, Parser]:
    parsers = [*map(parser_of, COMMANDS), *(make() for make in DROP_INS.values())]
    return {each.command: each for parser in parsers for each in with_those_below(parser)}


PARSERS = every_parser()


def texts_of(parser: Parser) -> Iterator[Text]:
    about = parser.about
    yield from (parser.summary, about.description)
    yield from (example.does for example in about.examples)
    yield from (means for _, means in about.exit_codes)
    yield from (argument.text for argument in parser.all_arguments)
    yield from (group.title for group in parser.groups)
    yield from (note for group in parser.groups for note in group.notes)


@pytest.mark.parametrize("command", PARSERS)
def test_every_sentence_is_in_both_languages(command: str) -> None:
    for text in texts_of(PARSERS[command]):
        assert text.en and not CHINESE.search(text.en), text
        assert CHINESE.search(text.zh), text


@pytest.mark.parametrize("command", PARSERS)
def test_options_are_explained_in_one_voice(command: str) -> None:
    """A capitalised phrase that is clear without the option's name, without a full stop."""
    for argument in PARSERS[command].all_arguments:
        first = argument.text.en[0]
        assert not first.islower() or argument.text.en.split(":")[0] in (*argument.choices, "aten"), (
            argument.text
        )
        assert not argument.text.en.endswith(".") or argument.text.en.endswith(("...", "module.")), (
            argument.text
        )


@pytest.mark.parametrize("command", PARSERS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_help_fits(command: str, language: str) -> None:
    """No explanation is wider than the terminal; commands to be copied are not broken."""
    parser = PARSERS[command]
    shown = help_page(parser, "zh" if language == "zh" else "en", 80).splitlines()
    whole = {example.command for example in parser.about.examples}
    for line in shown:
        is_form = line.strip() in whole or parser.command in line
        assert is_form or width_of(line) <= 80, line


@pytest.mark.parametrize("command", PARSERS)
def test_the_page_of_the_docs_is_there(command: str) -> None:
    page = PARSERS[command].about.page
    assert all((DOCS / language / page).is_file() for language in ("en", "zh")) and page.endswith(".md")


EXAMPLES = [
    pytest.param(example.command, id=example.command[:60])
    for parser in PARSERS.values()
    for example in parser.about.examples
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_are_understood(example: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command's own parser takes them, and no option in them is an old spelling."""
    found = re.search(
        r"(ferry|ms_fmk_transplt|torch_gpu2mlu|msaccucmp|msprobe)\b.*", re.sub(r"\)\"$| > .*$", "", example)
    )
    assert found is not None
    name, *words = shlex.split(found[0])
    if name == "ferry":
        parser, words = parser_of(words[0]), words[1:]
        if words and words[0] in parser.others:
            parser, words = parser.others[words[0]], words[1:]
        words = words[: words.index("--")] if parser.command == "ferry migrate" and "--" in words else words
    else:
        parser = DROP_INS[name]()
    args = parser.parse(words)
    assert capsys.readouterr().err == ""
    own = words[: len(words) - len(getattr(args, "program", None) or [])]
    flags = [word.partition("=")[0] for word in own if re.match(r"--?[a-z]", word)]
    known = {
        flag
        for each in with_those_below(parser)
        for argument in each.all_arguments
        for flag in argument.flags
    }
    assert set(flags) <= known


def test_every_command_has_examples() -> None:
    assert [command for command, parser in PARSERS.items() if not parser.about.examples] == []


# Errors.

WRONG = [
    ("scan .", "missing: --to VENDOR[,VENDOR]; see `ferry scan --help`", "缺少参数：--to VENDOR[,VENDOR]；参见 `ferry scan --help`"),
    ("scan . --tos npu", "unknown option --tos (did you mean --to?)", "未知选项 --tos（是否想用 --to？）"),
    ("scan --to npu --verb", "unknown option --verb (did you mean --verbose?)", "未知选项 --verb（是否想用 --verbose？）"),
    ("rules TF101 TF102", "unexpected argument: TF102", "多余的参数：TF102"),
    ("convert . --to npu --batch splt", "--batch: 'splt' is not one of keep, split (did you mean split?)", "不在可选值 keep, split 之中"),
    ("record --seed x a.py", "--seed: 'x' is not a number from 0 to 4294967295", "'x' 不是 0 到 4294967295 之间的整数"),
    ("doctor --nproc", "--nproc: its value is missing", "--nproc：缺少取值"),
    ("convert . --to npu --dry-run -o a", "exclude each other; leave one out", "不能同时使用"),
    ("checkpoint", "missing: ACTION; see `ferry checkpoint --help`", "缺少参数：ACTION"),
    ("checkpoint fix a", "missing: --output FILE; see `ferry checkpoint fix --help`", "参见 `ferry checkpoint fix --help`"),
    ("zoo chekc a", "ACTION: 'chekc' is not one of new, check (did you mean check?)", "是否想用 check？"),
    ("scna", "no command `scna`; did you mean `scan`?", "没有命令 `scna`；是否想用 `scan`？"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "english", "chinese"), WRONG)
def test_what_is_wrong_is_said_in_one_line(
    words: str,
    english: str,
    chinese: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TORCHFERRY_LANG", "en")
    for language, said in (("en", english), ("zh", chinese)):
        monkeypatch.setenv("TORCHFERRY_LANG", language)
        assert main(words.split()) == 2
        printed = capsys.readouterr()
        assert printed.out == "" and printed.err.count("\n") == 1
        assert printed.err.startswith("ferry: ") and said in printed.err


def test_the_language_of_an_error_can_be_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHFERRY_LANG", "en")
    assert main(["--lang", "zh", "scan", "."]) == main(["scan", ".", "--lang=zh"]) == 2
    assert capsys.readouterr().err.count("缺少参数") == 2


# Options that were renamed.

OLD = [
    ("prove", "--to npu --original a.py --converted b.py", {"original": "a.py", "converted": "b.py"}),
    ("run", "--to npu --explain", {"list_redirects": True}),
    ("run", "--to npu --summary s.json a.py", {"output": Path("s.json")}),
    (
        "record",
        "--as-is cpu --from 3 --module m.* a.py",
        {"device": "cpu", "first_step": 3, "modules": ["m.*"]},
    ),
    ("profile", "--steps 3:5 --keep-running a.py", {"window": (3, 5), "keep_going": True}),
    ("ops", "--to npu --model m:f --amp bfloat16 --all", {"autocast": "bfloat16", "verbose": True}),
    ("overflow", "--strict a.py", {"strict": True}),
    ("analyze", "prof --only a --only b", {"select": ["a", "b"]}),
    ("explain", "--tee --all", {"pass_through": True, "verbose": True}),
    ("oplog", "logs --warmup 5 --summary f", {"warmup": 5.0, "op_info": Path("f")}),
    ("compare", "-m a.h5 -g b.h5", {"named_mine": Path("a.h5"), "named_golden": Path("b.h5")}),
    ("export", "a.pth --model m:f -o a.onnx --only ema", {"only": "ema"}),
    ("zoo", "new a --from b --original c.log", {"original": Path("c.log")}),
    ("convert", "a --to npu -s --model net", {"specify_device": True, "model": "net"}),
]


@pytest.mark.parametrize(("command", "words", "values"), OLD)
def test_old_spellings_work_and_say_so(
    command: str, words: str, values: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    parser = parser_of(command)
    args = parser.parse(words.split(), "en")
    assert {name: getattr(args, name) for name in values} == values
    said = capsys.readouterr().err.splitlines()
    assert said and all(re.fullmatch(r"ferry: `-[-\w]+` is now `--[-\w]+`", line) for line in said)
    shown = help_page(parser, "en")
    for line in said:
        old = line.split("`")[1]
        assert f"{old} " not in shown.partition("Options:")[2], f"{old} is still listed"


def test_one_flag_takes_a_value_in_all_commands_or_in_none() -> None:
    """--converted is a path nowhere, --steps a range nowhere."""
    kinds: dict[str, set[str]] = {}
    for command, parser in PARSERS.items():
        for argument in parser.all_arguments if command.startswith("ferry ") else ():
            for flag in argument.flags:
                kind = argument.value.split("[")[0] if argument.takes_value else "switch"
                kinds.setdefault(flag, set()).add("choice" if kind.startswith("{") else kind)
    several = {flag: kind for flag, kind in kinds.items() if len(kind) > 1}
    named = {
        "-o",
        "--output",
        "--from",
        "--amp",
        "--check",
        "--input",
        "--op",
        "--rank",
        "--only",
        "--main",
        "--golden",
        "--page",
        "--select",
        "--ignore",
    }
    assert {flag: kind for flag, kind in several.items() if flag not in named} == {}


# Layout.


def test_chinese_is_wrapped_by_its_width() -> None:
    lines = wrapped("将报告写入 FILE，由后缀决定格式：.txt、.json（可重复使用）。", 20)
    assert all(width_of(line) <= 20 for line in lines) and len(lines) > 2
    assert not any(line[0] in "，：、）。" for line in lines)
    assert "".join(lines).replace(" ", "") == "将报告写入FILE，由后缀决定格式：.txt、.json（可重复使用）。"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_overview_obeys_columns(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    assert max(map(width_of, overview(language).splitlines())) <= 70
    monkeypatch.setenv("COLUMNS", "300")
    assert 70 < max(map(width_of, overview(language).splitlines())) <= 100


@pytest.mark.parametrize(
    "words", ["help scan", "scan --help", "scan help", "help checkpoint fix", "record cut --help"]
)
def test_ways_to_help(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(words.split())
    assert end.value.code == 0 and "usage: ferry" in capsys.readouterr().out.replace("用法： ", "usage: ")


def test_a_folder_called_help_is_no_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "help").mkdir()
    (tmp_path / "help/train.py").write_text(TRAIN)
    assert main(["rules", "help"]) == 2


def test_what_a_word_was_to_be() -> None:
    assert close_to("--verb", ["--version", "--verbose"]) == "--verbose"
    assert close_to("--xyz", ["--version", "--verbose"]) == ""
