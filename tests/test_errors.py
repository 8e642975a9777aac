"""An error in the user's language, in English for callers from Python, and unchanged from another process."""

from __future__ import annotations

import pickle

import pytest

from torchferry.cli.main import guarded, main
from torchferry.errors import InputError, RunError
from torchferry.text import Text

MISSING = Text(
    "no such file: x.py; give a Python file or a folder", "没有该文件：x.py；请给出 Python 文件或文件夹"
)
SECOND = Text("nothing was written", "未写入任何内容")


def fail() -> int:
    raise InputError(MISSING, SECOND)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_command_shows_it_in_the_language_of_the_user(
    language: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TORCHFERRY_LANG", language)
    assert guarded("ferry", fail) == 2
    at = ("en", "zh").index(language)
    assert capsys.readouterr().err == f"ferry: {MISSING[at]}\nferry: {SECOND[at]}\n"


def test_its_string_is_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHFERRY_LANG", "zh")
    assert str(InputError(MISSING, SECOND)) == f"{MISSING.en}\n{SECOND.en}"


def test_it_is_part_of_another_sentence_in_both_languages() -> None:
    assert Text("not run: {why}", "未运行：{why}").format(why=InputError(SECOND).text) == (
        "not run: nothing was written",
        "未运行：未写入任何内容",
    )


def test_it_comes_from_another_process_in_both_languages() -> None:
    error = RunError(MISSING, SECOND)
    for other in (pickle.loads(pickle.dumps(error)), RunError.from_json(error.to_json())):
        assert isinstance(other, RunError)
        assert other.texts == error.texts
        assert str(other) == str(error)


@pytest.mark.parametrize("given", ["--lang zh", "--lang=zh"])
def test_an_option_chooses_the_language_and_leaves_the_environment(
    given: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TORCHFERRY_LANG", "en")
    assert main(["scan", "missing.py", "--to", "ascend", *given.split()]) == 2
    assert main(["scan", "missing.py", "--to", "ascend"]) == 2
    chinese, english = capsys.readouterr().err.splitlines()
    assert not chinese.isascii()
    assert english.isascii()
