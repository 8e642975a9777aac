"""Bodies of pages: the same HTML as a page of its own and beside others; what pages say about how they were made."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from torchferry.report.bodies import PageBody, nested, scoped, whole_page
from torchferry.report.html import section
from torchferry.report.private import without_private
from torchferry.report.provenance import Provenance, command_line, commit_of, now, short_path, this_run
from torchferry.text import Text

BODY = PageBody(
    "ops",
    "train.py",
    sections=(
        section(Text("Lines", "行"), '<a href="#line-3">3</a><a href="https://x.org/#line-3">x</a>', "lines"),
        '<label for="query">q</label><script type="application/json" id="data">{"a":" id=\\"query\\""}</script>',
    ),
    made=Provenance("ferry ops", "0.1.0", "3.11.7", "2.13.0", "3" * 40, "2026-11-19 17:55 UTC"),
)


@pytest.mark.parametrize(
    ("style", "narrowed"),
    [
        ("h2 { color: red; }", ".x h2 { color: red; }"),
        ("a, td:is(b, i) { x: y; }", ".x a, .x td:is(b, i) { x: y; }"),
        ("@media print { a { x: y; } }", "@media print {.x a { x: y; } }"),
        ("/* a { } */ b { x: y; }", ".x b { x: y; }"),
    ],
)
def test_a_style_of_one_report_does_not_reach_another(style: str, narrowed: str) -> None:
    assert scoped(style, ".x").strip() == narrowed


def test_two_reports_in_one_page_have_different_ids() -> None:
    inside = PageBody("index", "All", sections=(nested(BODY, "a-"), nested(BODY, "b-")))
    text = whole_page(inside, "en", inside=[BODY])
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids)) and {"a-lines", "b-lines", "a-data", "b-data"} <= set(ids)
    assert 'href="#b-line-3"' in text and 'href="https://x.org/#line-3"' in text and 'for="a-query"' in text
    assert '{"a":" id=\\"query\\""}' in text  # data is data


def test_long_pages_have_a_table_of_contents() -> None:
    parts = tuple(section(Text(f"Part {at}", f"第 {at} 部分"), "", f"part-{at}") for at in range(4))
    assert 'href="#part-3"' in nested(PageBody("x", "x", sections=parts))
    assert "<nav" not in nested(PageBody("x", "x", sections=parts[:3]))


def test_every_page_says_how_it_was_made() -> None:
    text = whole_page(BODY, "en")
    for said in (
        "ferry ops",
        "TorchFerry 0.1.0, Python 3.11.7, PyTorch 2.13.0",
        "333333333333",
        "2026-11-19",
    ):
        assert said in text


def test_the_command_names_no_folder_of_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    said = command_line(
        ["/opt/bin/ferry", "scan", f"{tmp_path}/a/b.py", "--data=/secret/place/set", "-o", "x.html"]
    )
    assert said == "ferry scan a/b.py --data=set -o x.html"
    assert command_line(["/x/torchferry/__main__.py", "ops"]) == "ferry ops"
    assert short_path("/elsewhere/npu.h5") == "npu.h5" and short_path("runs/npu.h5") == "runs/npu.h5"


def test_the_date_can_be_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert now() == "1970-01-01 00:00 UTC" == this_run().date


def test_the_commit_is_that_of_the_folder(tmp_path: Path) -> None:
    assert commit_of(tmp_path) == ""
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    said = subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    (tmp_path / "below").mkdir()
    assert commit_of(tmp_path / "below") == said
    subprocess.run([*git, "pack-refs", "--all"], check=True)
    assert commit_of(tmp_path) == said


def test_folders_and_the_machine_are_taken_out_of_pages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setattr("socket.gethostname", lambda: "gpu-17")
    text = f"{tmp_path}/a.py, {tmp_path}, {tmp_path}-old, /home/somebody/b.py on gpu-17, gpu-170"
    assert without_private(text) == f"a.py, ., {tmp_path}-old, ~/b.py on HOST, gpu-170"
