"""The recorder as a block of code: the guide's snippets run as they are written there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchferry.accuracy.file.reader import open_record

from .blocks import MODEL, run_code

DUMP = """\
for i, data in enumerate(dataloader):
    with torch.utils.dumper(use_dump=True, dump_path="./model_gpu.h5") as dump:
        # 模型训练代码
        xxx # forward code 
        xxx # backward code
    exit()
    xxx # optimizer code 
"""  # noqa: W291  as it is printed
LOAD = """\
for i, data in enumerate(dataloader):
    with torch.utils.dumper(use_dump=True, load_file_path="./model_gpu.h5", dump_path="./model_npu.h5") as dump:
        # 模型训练代码
        xxx # forward code 
        xxx # backward code
    exit()
    xxx # optimizer code
"""  # noqa: W291
OVERFLOW = """\
# check_overflow为溢出检测控制开关
# dump_path为dump文件保存路径
with torch.utils.dumper(check_overflow=check_overflow, dump_path=dump_path, load_file_path='') as dump:   
    # 需要检测算子溢出的代码片段
"""  # noqa: W291
MAPPING = """\
with torch.utils.dumper(use_load=True, dump_path="./",load_file_path="./output.h5", load_with_acl_dump=True) as dump:
    # 模型计算代码，需用户自己添加
    # x = model(input_data)
"""
ACL = {"dump": {"dump_list": [], "dump_path": "./output_IR2TBE", "dump_mode": "all", "dump_op_switch": "on"}}


def filled(snippet: str) -> str:
    """The user's own code in its place."""
    snippet = snippet.replace("xxx # forward code", "loss = model(data).sum() # forward code")
    return snippet.replace("xxx # backward code", "loss.backward() # backward code")


def in_ours(snippet: str) -> str:
    return "import torchferry\n" + snippet.replace("torch.utils.dumper", "torchferry.accuracy.dumper")


def operators(path: Path) -> list[str]:
    with open_record(path) as record:
        return [call.operator for call in record.calls]


def test_the_guides_comparison_of_two_devices(tmp_path: Path) -> None:
    first = run_code(MODEL + in_ours(filled(DUMP)), tmp_path)
    assert first.returncode == 0, first.stderr
    second = run_code(
        MODEL + "torch.manual_seed(9)\nmodel[0].reset_parameters()\n" + filled(LOAD), tmp_path, "ascend"
    )
    assert second.returncode == 0, second.stderr
    with open_record(tmp_path / "model_gpu.h5") as golden, open_record(tmp_path / "model_npu.h5") as mine:
        assert (golden.header.device, mine.header.device, mine.header.vendor) == ("cpu", "npu", "ascend")
        assert mine.header.replayed.endswith("model_gpu.h5")
        assert [call.operator for call in mine.calls] == [call.operator for call in golden.calls]
        assert "aten::threshold_backward" in {call.operator for call in mine.calls}
        pairs = [
            (mine.raw(one), golden.raw(other))
            for ours, theirs in zip(mine.calls, golden.calls, strict=True)
            for one, other in zip(ours.outputs, theirs.outputs, strict=True)
            if one.offset is not None and not ours.operator.endswith(("::t", "::detach"))
        ]
        assert len(pairs) > 8 and all(bytes(one) == bytes(other) for one, other in pairs)


def test_the_guides_search_for_an_overflow(tmp_path: Path) -> None:
    before = 'check_overflow, dump_path = True, "overflow.h5"\nhalf = dataloader[0].half()\n'
    code = MODEL + before + OVERFLOW + "    for factor in (2.0, 60000.0):\n        half = half * factor\n"
    run = run_code(code, tmp_path, "ascend")
    assert run.returncode == 0, run.stderr
    assert "mul" in run.stdout + run.stderr
    assert operators(tmp_path / "overflow.h5") == ["aten::mul.Tensor"]


def test_a_faulty_acl_json_leaves_no_record(tmp_path: Path) -> None:
    (tmp_path / "acl.json").write_text('{"dump": {"dump_path": "output" "dump_mode": "all"}}')
    code = MODEL + in_ours(filled(DUMP)).replace("./model_gpu.h5", str(tmp_path / "output.h5"))
    assert run_code(code, tmp_path).returncode == 0
    run = run_code(
        f"{MODEL}input_data = dataloader[0]\n{MAPPING}    x = model(input_data)\n", tmp_path, "ascend"
    )
    assert run.returncode != 0 and "acl.json" in run.stderr and "line 1" in run.stderr
    assert [file.name for file in tmp_path.glob("*.h5")] == ["output.h5"]


@pytest.mark.parametrize("rewritten", [False, True])
def test_the_guides_dump_of_what_a_device_makes_of_single_operators(rewritten: bool, tmp_path: Path) -> None:
    """The operator that was found is taken out of the record with h5copy, or recorded alone."""
    (tmp_path / "acl.json").write_text(json.dumps(ACL))
    whole = tmp_path / "whole.h5"
    path = whole if rewritten else tmp_path / "output.h5"
    code = MODEL + in_ours(filled(DUMP)).replace("./model_gpu.h5", str(path))
    assert run_code(code, tmp_path).returncode == 0
    if rewritten:
        import h5py

        with h5py.File(whole) as file, h5py.File(tmp_path / "output.h5", "w") as copy:
            number = next(iter(file["relu"]))
            file.copy(f"relu/{number}", copy.create_group("relu"), number)
    run = run_code(
        f"{MODEL}input_data = dataloader[0]\n{MAPPING}    x = model(input_data)\n", tmp_path, "ascend"
    )
    assert run.returncode == 0, run.stderr
    files = [file.name for file in (tmp_path / "output_IR2TBE").rglob("*") if file.is_file()]
    assert sorted({name.split(".")[0] for name in files}) == (["relu"] if rewritten else ["addmm", "relu"])


WRONG = {
    "use_dump='yes'": "use_dump must be True or False",
    "use_dump=True, use_load=True, load_file_path='a.h5'": "use_dump and use_load can't be used together",
    "use_load=True": "use_load needs a recording",
    "use_dump=True, dump_path='nowhere/a.h5'": "name a file in a folder that exists",
    "use_dump=True, dump_path='a.h5', load_file_path='a.h5'": "can't be read and written at once",
    "use_dump=True, dump_path='a.h5', load_file_path='none.h5'": "none.h5",
    "load_with_acl_dump=True": "load_with_acl_dump needs use_load=True",
}


def test_wrong_arguments_are_said_in_one_line(tmp_path: Path) -> None:
    blocks = "\n".join(
        f"try:\n    with torchferry.accuracy.dumper({arguments}): pass\nexcept Exception as error: print(error)"
        for arguments in WRONG
    )
    run = run_code(f"import torchferry\n{blocks}\n", tmp_path)
    lines = run.stdout.splitlines()
    assert len(lines) == len(WRONG)
    assert all(words in line for words, line in zip(WRONG.values(), lines, strict=True)), lines


def test_blocks_end_whatever_happens_in_them(tmp_path: Path) -> None:
    code = """
import torch, torchferry
Dumper = torchferry.accuracy.dumper
try:
    with Dumper(use_dump=True, dump_path="one.h5"):
        torch.ones(2) + 1
        with Dumper(use_dump=True, dump_path="two.h5"):
            pass
except Exception as error:
    print(error)
with Dumper(use_dump=True) as dump:
    torch.ones(2).sin()
with Dumper(enabled=False, use_dump=True, dump_path="three.h5"):
    torch.ones(2).cos()
print(dump.path)
"""
    run = run_code(code, tmp_path)
    assert "dumpers can't be nested" in run.stdout, run.stderr
    assert "aten::add.Tensor" in operators(tmp_path / "one.h5")
    named_after_time = tmp_path / run.stdout.splitlines()[-1]
    assert named_after_time.suffix == ".h5" and "aten::sin" in operators(named_after_time)
    assert not {"two.h5", "three.h5"} & {file.name for file in tmp_path.iterdir()}


def test_only_the_vendor_that_has_it_has_it(tmp_path: Path) -> None:
    run = run_code("import torch\nprint(hasattr(torch.utils, 'dumper'))\n", tmp_path, "cambricon")
    assert run.stdout == "False\n"
