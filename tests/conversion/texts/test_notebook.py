"""Notebooks: their code is converted as one module, every byte outside of it stays."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.conversion.rewriting import run as run_module
from tests.conversion.rewriting import target
from tests.conversion.texts.notebooks import EXAMPLES, code, converted, markdown, notebook, run
from torchferry.conversion.file import FileJob
from torchferry.conversion.project import Plan, examine_project
from torchferry.conversion.rule import Proposal, Rule, RuleSet, all_rules
from torchferry.conversion.texts.notebook import convert_notebook
from torchferry.finding import Kind
from torchferry.outcome import FileStatus
from torchferry.source.decode import decode
from torchferry.source.edits import Edit
from torchferry.source.module import ParseError
from torchferry.text import Text


def said(*cells: dict[str, Any], rule: str = "") -> list[tuple[str, str, str]]:
    found = run(notebook(*cells)).findings
    return [
        (item.rule, item.kind.value, item.before)
        for item in found
        if item.kind is not Kind.CHANGE and item.rule.startswith(rule)
    ]


# What stays as it is.


@pytest.mark.parametrize(
    "cell",
    [
        markdown("call `.cuda()` on the model, device='cuda'"),
        {"cell_type": "raw", "metadata": {}, "source": ["torch.cuda.synchronize()"]},
        code("print(1)", outputs=[{"output_type": "stream", "name": "stdout", "text": ["device='cuda'\n"]}]),
        code("%%html", "<b>device='cuda' </b>"),
        code("%%javascript", "x = 'cuda'"),
        code("print(1)", metadata={"note": "torch.cuda"}),
        code("x = 'cuda'", metadata={"vscode": {"languageId": "javascript"}}),
        code(""),
    ],
    ids=["markdown", "raw", "output", "html", "javascript", "metadata", "other language", "empty"],
)
def test_only_code_changes(cell: dict[str, Any]) -> None:
    assert run(notebook(code("import torch"), cell)).new_text is None


@pytest.mark.parametrize(
    "metadata",
    [
        {"kernelspec": {"name": "ir", "language": "R", "display_name": "R"}},
        {"language_info": {"name": "julia"}, "kernelspec": {"name": "julia-1.9"}},
    ],
)
def test_a_notebook_in_another_language_is_left_and_said(metadata: dict[str, Any]) -> None:
    conversion = run(notebook(code("device <- 'cuda'"), **metadata))
    assert conversion.new_text is None
    assert [(item.rule, item.kind) for item in conversion.findings] == [("TF814", Kind.INFO)]


def test_a_rule_that_was_not_asked_for_says_nothing() -> None:
    book = notebook(code("device <- 'cuda'"), language_info={"name": "R"})
    job = FileJob(target("ascend"), RuleSet(rule for rule in all_rules() if rule.id == "TF103"))
    assert not convert_notebook(decode(json.dumps(book).encode()), "work.ipynb", job).findings


def test_a_notebook_in_another_language_that_has_nothing_to_do_with_cuda_is_not_mentioned() -> None:
    assert not run(notebook(code("1 + 1"), language_info={"name": "R"})).findings


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('{"cells": [\n{"cell_type": "code",\n}]}', 3, "nothing follows the comma"),
        ('{"cells": [] ', 1, "expected"),
        ('{"cells": []}\nx', 2, "follows its end"),
        ('["cuda"]', 1, "no list of cells"),
        ("<<<<<<< HEAD\n", 1, "not JSON"),
        ("", 1, "not JSON"),
        ('{"cells": [{"a": "\n"}]}', 1, "control character"),
        ('{"cells": ' + "[" * 100_000, 1, "not read"),
    ],
)
def test_a_file_that_is_no_notebook_is_refused(text: str, line: int, reason: str) -> None:
    with pytest.raises(ParseError, match=reason) as caught:
        run(text)
    assert caught.value.line == line


# Cells are one module.


def test_names_are_known_in_later_cells_and_the_plugin_is_imported_once() -> None:
    cells = (
        code("import torch.nn as nn", "from torch import cuda"),
        markdown("text"),
        code("import torch", "net = nn.Linear(2, 2)"),
        code("net.cuda()", "cuda.synchronize()", "device = torch.device('cuda:1')"),
    )
    assert converted(*cells) == [
        "import torch.nn as nn\nimport torch_npu\nfrom torch import npu",
        "text",
        "import torch\nnet = nn.Linear(2, 2)",
        "net.npu()\nnpu.synchronize()\ndevice = torch.device('npu:1')",
    ]


def test_the_plugin_is_imported_in_the_cell_that_imports_torch() -> None:
    cells = (code("import os"), code("import torch"), code("torch.ones(1).cuda()"))
    assert converted(*cells) == ["import os", "import torch\nimport torch_npu", "torch.ones(1).npu()"]


def test_a_function_of_the_users_in_another_cell_is_respected() -> None:
    cells = (
        code("import torch", "class Box:", "    def cuda(self):", "        return self"),
        code("box = Box()", "box.cuda()"),
    )
    assert converted(*cells)[1] == "box = Box()\nbox.cuda()"


def test_portable_code_is_defined_before_it_is_used() -> None:
    cells = (code("import torch"), code("x = torch.ones(1, device='cuda')"))
    first, second = converted(*cells, to="portable")
    assert first.startswith("import torch\nDEVICE_TYPE = ")
    assert second == "x = torch.ones(1, device=DEVICE_TYPE)"


def test_code_that_ipython_accepts_beyond_python() -> None:
    cells = (
        code("import torch"),
        code("await train(torch.ones(1).cuda())"),
        code("  x = torch.ones(1).cuda()"),
    )
    assert converted(*cells)[1:] == ["await train(torch.ones(1).npu())", "  x = torch.ones(1).npu()"]


def test_a_cell_that_does_not_parse_is_reported_and_the_others_are_converted() -> None:
    cells = (code("import torch"), code("x = (", "torch.cuda.synchronize()"), code("torch.ones(1).cuda()"))
    assert converted(*cells) == [
        "import torch\nimport torch_npu",
        "x = (\ntorch.cuda.synchronize()",
        "torch.ones(1).npu()",
    ]
    found = run(notebook(*cells)).findings
    unparsed = [(item.kind, item.line, item.before) for item in found if item.rule == "TF814"]
    assert unparsed == [(Kind.TODO, 18, ""), (Kind.TODO, 19, "torch.cuda.synchronize()")]
    assert "in cell 2." in next(item.why.en for item in found if item.rule == "TF814")


def test_a_cell_that_does_not_parse_and_has_nothing_to_do_with_cuda_is_not_mentioned() -> None:
    assert not run(notebook(code("import torch"), code("x = ("))).findings


@pytest.mark.parametrize("to", ["ascend", "portable"])
@pytest.mark.parametrize("module", ["imagenet/main.py", "finetune/train.py"])
def test_a_module_cut_into_cells_is_converted_like_the_module(module: str, to: str) -> None:
    text = (EXAMPLES / module).read_text("utf-8").removesuffix("\n")
    lines = text.split("\n")
    body = [node for node in ast.parse(text).body if not getattr(node, "decorator_list", ())]
    cuts = [0, *(node.lineno - 1 for node in body[1:]), len(lines)]
    cells = [code(*lines[start:end]) for start, end in pairwise(cuts)]
    assert len(cells) > 5
    expected = run_module(text + "\n", to)
    assert "\n".join(converted(*cells, to=to)) + "\n" == expected.new_text
    found = run(notebook(*cells), to).findings
    assert sorted((item.rule, item.kind, item.before) for item in found) == sorted(
        (item.rule, item.kind, item.before) for item in expected.findings
    )


# Magics.


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("%matplotlib inline\nx.cuda()", "%matplotlib inline\nx.npu()"),
        ("!nvidia-smi\nx.cuda()", "!npu-smi info\nx.npu()"),
        ("    !nvidia-smi", "    !npu-smi info"),
        ("if a:\n    !nvidia-smi\nx.cuda()", "if a:\n    !npu-smi info\nx.npu()"),
        ("y = !nvidia-smi\nx.cuda()", "y = !npu-smi info\nx.npu()"),
        (
            "!CUDA_VISIBLE_DEVICES=0 python train.py \\\n  --device cuda\nx.cuda()",
            "!ASCEND_RT_VISIBLE_DEVICES=0 python train.py \\\n  --device npu\nx.npu()",
        ),
        ("%env CUDA_VISIBLE_DEVICES=0", "%env ASCEND_RT_VISIBLE_DEVICES=0"),
        ("%env CUDA_VISIBLE_DEVICES 0", "%env ASCEND_RT_VISIBLE_DEVICES 0"),
        ("%env CUDA_VISIBLE_DEVICES", "%env ASCEND_RT_VISIBLE_DEVICES"),
        ("%run train.py --device cuda", "%run train.py --device npu"),
        ("%timeit -n 10 x.cuda()", "%timeit -n 10 x.npu()"),
        ("for i in y:\n    %time z = x.cuda()", "for i in y:\n    %time z = x.npu()"),
        ("%%time\nx.cuda()", "%%time\nx.npu()"),
        ("%%capture out\n\nx.cuda()", "%%capture out\n\nx.npu()"),
        ("%%timeit y = x.cuda()\ny.cuda()", "%%timeit y = x.npu()\ny.npu()"),
        ("%%bash\nexport CUDA_VISIBLE_DEVICES=0", "%%bash\nexport ASCEND_RT_VISIBLE_DEVICES=0"),
        ("%%time\n%%bash\npython a.py --device cuda", "%%time\n%%bash\npython a.py --device npu"),
        ("torch.cuda?\nx.cuda()", "torch.cuda?\nx.npu()"),
        ("?torch.cuda\nx.cuda()", "?torch.cuda\nx.npu()"),
        ("s = '''\n!nvidia-smi\n'''\n!ls\nx.cuda()", "s = '''\n!nvidia-smi\n'''\n!ls\nx.npu()"),
        ("y = (x\n  %z)\n!ls\nx.cuda()", "y = (x\n  %z)\n!ls\nx.npu()"),
        ("!ls\r\nx.cuda()\r\n%time x.cuda()\r\n", "!ls\r\nx.npu()\r\n%time x.npu()\r\n"),
    ],
)
def test_magics(before: str, after: str) -> None:
    setup = code("import torch", "x = torch.ones(1).cuda()")
    assert converted(setup, code(before))[1] == after


def test_a_file_that_a_cell_writes_is_a_module_of_its_own() -> None:
    cells = (code("import torch"), code("%%writefile train.py", "import torch", "torch.ones(1).cuda()"))
    assert converted(*cells) == [
        "import torch",
        "%%writefile train.py\nimport torch\nimport torch_npu\ntorch.ones(1).npu()",
    ]


def test_a_configuration_that_a_cell_writes_is_converted_as_one() -> None:
    cell = code("%%writefile conf/train.yaml", "device: cuda", "note: cuda ")
    assert converted(cell) == ["%%writefile conf/train.yaml\ndevice: npu\nnote: cuda "]


def test_kernels_in_a_cell_are_work() -> None:
    cells = (
        code("%%cu", "__global__ void add(float *a) {}"),
        code("%%writefile a.cu", "__global__ void b() {}"),
    )
    assert said(*cells, rule="TF801") == [("TF801", "todo", "")] * 2


def test_what_is_left_is_said() -> None:
    cells = (code("import torch"), code("torch.cuda?", "%%html"), code("%%html", "device: cuda "))
    assert said(*cells[::2], rule="TF814") == [("TF814", "info", "device: cuda")]
    assert said(cells[0], code("!ls", "torch.cuda?"), rule="TF814") == [("TF814", "info", "torch.cuda?")]


def test_what_a_command_needs_is_said_at_its_place() -> None:
    conversion = run(notebook(code("import torch"), code("%pip install flash-attn", "x = 1")))
    found = [(item.kind, item.line) for item in conversion.findings]
    assert conversion.new_text is None
    assert (Kind.TODO, 18) in found


# What is reported.


def test_findings_name_the_line_of_the_file_and_the_cell() -> None:
    book = notebook(
        markdown("a"),
        code("import torch"),
        code("", "%timeit torch.ones(1).cuda()", "x = 'é'; torch.cuda.synchronize()"),
    )
    text = json.dumps(book, indent=1)
    lines = text.split("\n")
    found = [item for item in run(text).findings if item.rule != "TF101"]
    assert [item.why.en for item in found] == ["The place is in cell 3."] * 2
    for item in found:
        assert lines[item.line - 1][item.col - 1 :].startswith(item.before)


def test_hunks_show_code_at_the_lines_of_the_file() -> None:
    book = notebook(code("import torch"), code("# 中", 's = "a"', "torch.ones(1).cuda()"))
    conversion = run(book)
    old, new = json.dumps(book, indent=1).split("\n"), (conversion.new_text or "").split("\n")
    first, second = conversion.hunks
    assert first.lines == ((" ", "import torch", "import torch"), ("+", "", "import torch_npu"))
    assert second.lines[1:] == (
        (" ", 's = "a"', 's = "a"'),
        ("~", "torch.ones(1).cuda()", "torch.ones(1).npu()"),
    )
    assert (
        "torch.ones(1).cuda()" in old[second.old_start + 1]
        and "torch.ones(1).npu()" in new[second.new_start + 1]
    )


def test_ignored_lines_and_rules() -> None:
    cells = (code("import torch", "a = torch.ones(1).cuda()  # ferry: ignore", "b = torch.ones(1).cuda()"),)
    assert converted(*cells)[0].endswith("a = torch.ones(1).cuda()  # ferry: ignore\nb = torch.ones(1).npu()")


# What goes wrong is undone.


def pass_that(change: Edit) -> Rule:
    """A pass that restructures the module by this one edit."""

    def restructure(context: Any) -> Any:
        if b"broken" not in context.module.data:
            yield Proposal(Kind.CHANGE, 0, 0, Text("breaks it", "破坏"), (change,))

    return Rule("TF999", "broken", Text("", ""), triggers=("torch",), restructure=restructure)


def test_a_pass_that_reaches_across_cells_is_not_made() -> None:
    book = notebook(code("import torch"), code("torch.ones(1).cuda()"))
    text = json.dumps(book, indent=1) + "\n"
    conversion = run(text, "ascend", pass_that(Edit(0, 14, "broken = 1 #")))
    assert conversion.new_text == run(text).new_text
    assert [item.rule for item in conversion.findings if item.kind is Kind.TODO] == ["TF814"]


def test_a_rewrite_that_fails_leaves_the_notebook_as_it_was() -> None:
    rule = Rule(
        "TF999",
        "again",
        Text("", ""),
        triggers=("cuda",),
        finish=lambda context, said: iter(
            [
                Proposal(
                    Kind.CHANGE,
                    0,
                    0,
                    Text("again", "再次"),
                    (Edit(len(context.module.data), len(context.module.data), "x = 1\n"),),
                )
            ]
        ),
    )
    conversion = run(notebook(code("import torch"), code("torch.ones(1).cuda()")), "ascend", rule)
    assert "second conversion" in conversion.failure and conversion.new_text is None
    assert not any(item.kind is Kind.CHANGE for item in conversion.findings)


def test_in_a_project_a_broken_notebook_is_copied_and_reported(tmp_path: Path) -> None:
    (tmp_path / "broken.ipynb").write_text('{"cells": [\n"torch.cuda"', encoding="utf-8")
    (tmp_path / "good.ipynb").write_text(
        json.dumps(notebook(code("import torch", "torch.ones(1).cuda()"))), encoding="utf-8"
    )
    broken, good = examine_project(tmp_path, Plan(target("ascend"))).outcomes
    assert (broken.record.status, broken.new_data) == (FileStatus.FAILED, None)
    assert [(item.rule, item.line) for item in broken.findings][:1] == [("TF901", 2)]
    assert good.record.status is FileStatus.CHANGED and good.new_data is not None


# The converted code runs.


def test_the_cells_run_on_the_simulated_device(tmp_path: Path) -> None:
    new = json.loads(run((EXAMPLES / "notebook" / "line.ipynb").read_text("utf-8")).new_text or "")
    sources = ["".join(cell["source"]) for cell in new["cells"] if cell["cell_type"] == "code"]
    python = [
        "\n".join(line for line in source.split("\n") if line[:1] not in "!%")
        for source in sources
        if not source.startswith("%%bash")
    ]
    script = tmp_path / "cells.py"
    script.write_text(f"for cell in {python!r}:\n    exec(cell)\n", encoding="utf-8")
    ferry = Path(sys.executable).with_name("ferry")
    command = [str(ferry), "run", "--to", "ascend", "--sim", "--converted", "-q", str(script)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-2:] == ["npu", "loss 0.0000, weight 3.00, on npu"]
