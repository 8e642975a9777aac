"""The file around the code of a notebook: every byte of it stays, however it is written."""

from __future__ import annotations

import json
import re

import nbformat
import pytest

from tests.conversion.rewriting import VENDORS
from tests.conversion.texts.notebooks import code, converted, markdown, notebook, run

BEFORE = '# 中文 "é"\t\\\nimport torch\nx = torch.ones(2).cuda()'
AFTER = '# 中文 "é"\t\\\nimport torch\nimport torch_npu\nx = torch.ones(2).npu()'


def written(source: str | list[str], indent: int | str | None = 1, ascii_only: bool = False) -> str:
    """A notebook with one code cell among all that a notebook may hold."""
    output = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "iVBORcuda=="}}
    image = {"cell_type": "markdown", "metadata": {}, "source": ["![](a.png)"], "attachments": {"a.png": {}}}
    book = notebook(image, code(outputs=[output], source=source), zeta=1.50, alpha=float("nan"))
    return json.dumps(book, indent=indent, ensure_ascii=ascii_only)


@pytest.mark.parametrize("indent", [None, 1, 4, "\t"])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize(
    "source",
    [BEFORE, [BEFORE], BEFORE.splitlines(keepends=True)],
    ids=["string", "list of one", "list of lines"],
)
def test_every_other_byte_stays(source: str | list[str], indent: int | str | None, ascii_only: bool) -> None:
    text = written(source, indent, ascii_only)
    for variant in (text, text + "\n", text.replace("\n", "\r\n") + "\r\n", text.replace('": ', '"  :\t')):
        new_text = run(variant).new_text
        assert new_text is not None
        undone = re.sub(r'import torch_npu\\n(",\s*")?', "", new_text).replace(".npu()", ".cuda()")
        assert undone == variant
        assert "".join(json.loads(new_text)["cells"][1]["source"]) == AFTER
        assert run(new_text).new_text is None


@pytest.mark.parametrize("at", range(0, len(BEFORE), 7))
def test_a_source_may_be_cut_anywhere(at: int) -> None:
    new_text = run(written([BEFORE[:at], BEFORE[at : at + 9], "", BEFORE[at + 9 :]])).new_text
    assert new_text is not None
    assert "".join(json.loads(new_text)["cells"][1]["source"]) == AFTER


def test_escapes_keep_their_spelling() -> None:
    text = written("SOURCE").replace(
        "SOURCE", r"import torch\n\u0078.cuda() # \/ \u4e2d \ud83d\ude00\n\u0078.cuda() #\/"
    )
    new_text = run(text.replace("import torch", r"import torch\nx = torch.ones(1)")).new_text
    assert new_text is not None
    assert r"\u0078.npu() # \/ \u4e2d \ud83d\ude00\n\u0078.npu() #\/" in new_text


def test_an_added_line_is_a_line_of_the_list() -> None:
    cell = json.loads(run(notebook(code("import torch", "torch.ones(1).cuda()"))).new_text or "")["cells"][0]
    assert cell["source"] == ["import torch\n", "import torch_npu\n", "torch.ones(1).npu()"]
    cell = json.loads(run(notebook(code("torch.ones(1).cuda()\nimport torch"))).new_text or "")["cells"][0]
    assert cell["source"] == ["torch.ones(1).npu()\n", "import torch\n", "import torch_npu"]


def test_an_added_line_ends_as_the_others_do() -> None:
    assert converted(code("import torch\r\ntorch.ones(1).cuda()\r\n")) == [
        "import torch\r\nimport torch_npu\r\ntorch.ones(1).npu()\r\n"
    ]


def test_half_a_surrogate_pair_is_no_reason_to_fail() -> None:
    text = written("SOURCE").replace("SOURCE", r"x = '\ud83d' # device = 'cuda' torch.cuda")
    conversion = run(text)
    assert conversion.new_text is None and not conversion.failure
    assert {item.rule for item in conversion.findings} == {"TF814"}


def test_format_3() -> None:
    cell = {"cell_type": "code", "language": "python", "input": ["import torch\n", "torch.ones(1).cuda()"]}
    cell |= {"outputs": [], "metadata": {}, "collapsed": False}
    other = cell | {"language": "ruby"}
    book = {"metadata": {"name": ""}, "nbformat": 3, "nbformat_minor": 0}
    book["worksheets"] = [{"cells": [other, cell], "metadata": {}}]
    new = json.loads(run(book).new_text or "")
    assert (
        "".join(new["worksheets"][0]["cells"][1]["input"])
        == "import torch\nimport torch_npu\ntorch.ones(1).npu()"
    )
    assert new["worksheets"][0]["cells"][0] == other


@pytest.mark.parametrize("to", [*VENDORS, "portable"])
def test_the_result_is_a_valid_notebook(to: str) -> None:
    cells = (
        code("!nvidia-smi", "import torch"),
        markdown("a"),
        code("torch.ones(1).cuda()", source="torch.ones(1).cuda()"),
    )
    new_text = run(notebook(*cells), to).new_text
    assert new_text is not None
    nbformat.validate(nbformat.reads(new_text, as_version=4))
