"""init_dump, set_dump, finalize_dump: single operators of the device as files, as a JSON file says."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from torchferry.accuracy.dump.mode import Configuration, read_configuration
from torchferry.errors import InputError

from .blocks import run_code

GUIDE = """\
import torch
torch.npu.set_device("npu:0")
torch.npu.init_dump()
torch.npu.set_dump("/home/HwHiAiUser/dump.json")   # "/home/HwHiAiUser/dump.json"为配置文件路径，用户自行配置
a = torch.tensor([2, 2]).to("npu:0")
a.add_(1)
torch.npu.finalize_dump()
"""


def dumped(tmp_path: Path, code: str = GUIDE, **fields: Any) -> dict[str, tuple[list[Any], list[Any]]]:
    """What is in the files, by operator: inputs and outputs."""
    dump = {"dump_list": [], "dump_path": "output", "dump_mode": "all", "dump_op_switch": "on", **fields}
    (tmp_path / "dump.json").write_text(json.dumps({"dump": dump}))
    run = run_code(code.replace("/home/HwHiAiUser", str(tmp_path)), tmp_path, "ascend")
    assert run.returncode == 0, run.stderr
    files = sorted((tmp_path / "output").rglob("*.*")) if (tmp_path / "output").exists() else []
    return {file.name.split(".")[0]: read(file) for file in files if file.is_file()}


def read(file: Path) -> tuple[list[Any], list[Any]]:
    data = file.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    fields = decoded(data[8 : 8 + length])
    assert dict(fields)[1] == b"2.0" and dict(fields)[6].decode() in file.name
    place = 8 + length
    found: dict[int, list[Any]] = {4: [], 3: []}  # inputs come first
    for number in found:
        for each in (decoded(value) for field, value in fields if field == number):
            tensor = dict(each)
            size = tensor[5 if number == 4 else 6]
            shape = [value for _, value in decoded(tensor[3])]
            found[number].append((tensor[1], shape, data[place : place + size]))
            place += size
    assert place == len(data)
    return found[4], found[3]


def decoded(message: bytes) -> list[tuple[int, Any]]:
    """Protocol Buffers: numbers and bytes."""
    fields, place = [], 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(message):
        key = varint()
        value: Any = varint()
        if key & 7 == 2:
            value, place = message[place : place + value], place + value
        fields.append((key >> 3, value))
    return fields


def test_the_guides_example(tmp_path: Path) -> None:
    found = dumped(tmp_path)
    assert list(found) == ["add_"]  # neither the copy to the device nor what was before or after
    int64 = 8
    assert found["add_"] == (
        [(int64, [2], struct.pack("<qq", 2, 2))],
        [(int64, [2], struct.pack("<qq", 3, 3))],
    )
    (file,) = (file for file in (tmp_path / "output").rglob("*") if file.is_file())
    time, device, model, name = file.relative_to(tmp_path / "output").parts
    assert (len(time), time.isdigit(), device, model) == (14, True, "0", "0")
    assert name.split(".")[:4] == ["add_", "add__Tensor", "0", "0"] and len(name.split(".")) == 5


@pytest.mark.parametrize(("mode", "counts"), [("input", (1, 0)), ("output", (0, 1)), ("all", (1, 1))])
def test_inputs_outputs_or_both(mode: str, counts: tuple[int, int], tmp_path: Path) -> None:
    inputs, outputs = dumped(tmp_path, dump_mode=mode)["add_"]
    assert (len(inputs), len(outputs)) == counts


def test_only_the_operators_of_the_list(tmp_path: Path) -> None:
    code = GUIDE.replace("a.add_(1)", "a.add_(1)\na.mul_(2)\nb = a.float().sin()")
    assert set(dumped(tmp_path, code)) == {"add_", "mul_", "_to_copy", "sin"}
    (tmp_path / "listed").mkdir()
    listed = [{"model_name": "any", "layer": ["mul_", "aten::sin"]}]
    assert set(dumped(tmp_path / "listed", code, dump_list=listed)) == {"mul_", "sin"}


def test_a_switch_that_is_off_dumps_nothing_and_says_so(tmp_path: Path) -> None:
    assert dumped(tmp_path, dump_op_switch="off") == {}
    code = GUIDE.replace("/home/HwHiAiUser", str(tmp_path))
    assert 'dump_op_switch is not "on"' in run_code(code, tmp_path, "ascend").stderr


def test_the_order_of_the_calls_matters(tmp_path: Path) -> None:
    code = """
import torch
for call in (torch.npu.finalize_dump, lambda: torch.npu.set_dump("dump.json"), torch.npu.init_dump, torch.npu.init_dump):
    try:
        call()
    except RuntimeError as error:
        print(error)
"""
    printed = run_code(code, tmp_path, "ascend").stdout.splitlines()
    assert printed == [
        "no dump is in progress; call init_dump() first",
        "no dump is in progress; call init_dump() first",
        "a dump is already in progress; end it with finalize_dump()",
    ]


def test_what_may_be_left_out(tmp_path: Path) -> None:
    file = tmp_path / "dump.json"
    file.write_text('{"dump": {"dump_path": "/somewhere"}}')
    assert read_configuration(str(file)) == Configuration(Path("/somewhere"), "output", False, ())


BAD = {
    '{"dump": {"dump_list":[] "dump_path":"./out"}}': "line 1, column 26",
    '{"dump": {"dump_path": "out" # where\n}}': "JSON allows no comments",
    '{"dump": {"dump_path": "out", "dump_mode": "everything"}}': "one of input, output, all",
    '{"dump": {"dump_path": "out", "dump_op_switch": true}}': "one of on, off",
    '{"dump": {"dump_mode": "all"}}': "dump_path must name a folder",
    '{"dump": {"dump_path": "out", "dump_list": "conv"}}': "dump_list must be a list",
    '{"dump": {"dump_path": "out", "dump_list": [{"layer": 3}]}}': "dump_list must be a list",
    '["dump"]': 'the field "dump" is missing',
}


@pytest.mark.parametrize(("text", "words"), BAD.items())
def test_bad_files(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "dump.json"
    file.write_text(text)
    with pytest.raises(InputError) as raised:
        read_configuration(str(file))
    assert words in str(raised.value) and str(file) in str(raised.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.json: can't be read"):
        read_configuration(str(tmp_path / "no.json"))
