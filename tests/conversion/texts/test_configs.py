"""TF813: configurations in YAML, JSON, TOML and INI."""

from __future__ import annotations

import configparser
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conversion.rewriting import VENDORS, vendor
from tests.conversion.texts.texting import messages, rewritten, run, said
from torchferry.conversion.texts.config_reader import UnreadableConfigError, read_json, read_toml, read_yaml

toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("a.yaml", "# device: cuda\nx: 1  # backend: nccl\n", id="comments"),
        pytest.param("a.yaml", "description: trains on cuda\ntitle: 'cuda'\n", id="prose"),
        pytest.param("a.yaml", "note: |\n  device: cuda\n  backend: nccl\n\n  more\n", id="a block of text"),
        pytest.param("a.yaml", "note: >-\n\n    device: cuda\nx: 1\n", id="a folded block of text"),
        pytest.param("a.yaml", "device: cuda\n  or something else\n", id="a text of several lines"),
        pytest.param("a.yaml", 'x: "\n  device: cuda\n"\n', id="a quoted text of several lines"),
        pytest.param("a.yaml", "cuda: true\nnccl: 3\n", id="keys of the program's own"),
        pytest.param("a.toml", "markers = ['flash_attn_test: tests']\n", id="a word of the program's own"),
        pytest.param("a.yaml", "device: cpu\nbackend: gloo\nuse_cuda: true\n", id="other devices"),
        pytest.param("a.yaml", "device: ${device}\nname: ${oc.env:X,cuda}\n", id="references"),
        pytest.param("a.yaml", "{% if x %}\ndevice: cuda\n{% endif %}\n", id="a template"),
        pytest.param("a.yaml", "? device\n: cuda\n", id="a key marked by a question mark"),
        pytest.param("a.yaml", "path: /usr/local/cuda\nfile: cuda:0.txt\n", id="paths"),
        pytest.param(
            "a.json", '{"note": "device: cuda", "cuda": 1, "vocab": ["cuda"]}', id="JSON: texts and keys"
        ),
        pytest.param("a.json", '{"device": "cuda"', id="JSON: broken"),
        pytest.param("a.json", '{"device": "cuda"}\n{"device": "cuda"}\n', id="JSON: several"),
        pytest.param("a.toml", 'text = """\ndevice = "cuda"\n"""\n', id="TOML: a text of several lines"),
        pytest.param("a.toml", 'device = "cuda\n', id="TOML: broken"),
        pytest.param("a.ini", "[a]\n; device = cuda\nnote = on cuda\nlist =\n  cuda\n", id="INI"),
    ],
)
def test_noop(name: str, text: str) -> None:
    for target in (*VENDORS, "portable"):
        assert rewritten(name, text, target) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("device: cuda\n", "device: npu\n"),
        ('device:   "cuda:0"   # cuda or cpu\n', 'device:   "npu:0"   # cuda or cpu\n'),
        ("a:\n  map_location: 'cuda'\n", "a:\n  map_location: 'npu'\n"),
        ("devices: [cuda:0, 'cuda:1', cpu]\n", "devices: [npu:0, 'npu:1', cpu]\n"),
        ("devices:\n- cuda:0\n-  cuda:1\n", "devices:\n- npu:0\n-  npu:1\n"),
        ("dist_cfg: {port: 1, backend: nccl}\n", "dist_cfg: {port: 1, backend: hccl}\n"),
        ("dist_params:\n  backend: NCCL\n", "dist_params:\n  backend: HCCL\n"),
        (
            "base: &base\n  device: cuda\nrun:\n  <<: *base\n",
            "base: &base\n  device: npu\nrun:\n  <<: *base\n",
        ),
        ("device: !!str cuda\n", "device: !!str npu\n"),
        ("device: &d cuda\nx: *d\n", "device: &d npu\nx: *d\n"),
        ("device:\n  type: cuda\n  index: 0\n", "device:\n  type: npu\n  index: 0\n"),
        (
            "a: 1\n---\ndevice: cuda\n...\n---\nbackend: nccl\n",
            "a: 1\n---\ndevice: npu\n...\n---\nbackend: hccl\n",
        ),
        ("- name: x\n  device: cuda\n- {device: cuda}\n", "- name: x\n  device: npu\n- {device: npu}\n"),
        ('"device" : cuda\n', '"device" : npu\n'),
        ("note: |\n  cuda\ndevice: cuda\n", "note: |\n  cuda\ndevice: npu\n"),
        ("autocast:\n  device_type: cuda\n", "autocast:\n  device_type: npu\n"),
        ("target: cuda:0\n", "target: npu:0\n"),
        ("device: cuda:${rank}\n", "device: npu:${rank}\n"),
        ("backend: cpu:gloo,cuda:nccl\n", "backend: cpu:gloo,npu:hccl\n"),
        ("args: [--device, cuda, --backend=nccl]\n", "args: [--device, npu, --backend=hccl]\n"),
        ("env:\n  CUDA_VISIBLE_DEVICES: '0'\n", "env:\n  ASCEND_RT_VISIBLE_DEVICES: '0'\n"),
        ("environment:\n  - CUDA_VISIBLE_DEVICES=0\n", "environment:\n  - ASCEND_RT_VISIBLE_DEVICES=0\n"),
        (
            "env:\n- name: CUDA_VISIBLE_DEVICES\n  value: 0\n",
            "env:\n- name: ASCEND_RT_VISIBLE_DEVICES\n  value: 0\n",
        ),
        ("script:\n  - python a.py --device cuda\n", "script:\n  - python a.py --device npu\n"),
        ("run: CUDA_VISIBLE_DEVICES=0 python a.py\n", "run: ASCEND_RT_VISIBLE_DEVICES=0 python a.py\n"),
    ],
)
def test_yaml(before: str, after: str) -> None:
    assert rewritten("conf/a.yaml", before) == after
    assert rewritten("a.yml", before.replace("\n", "\r\n")) == after.replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("a.json", '{"a": {"device" : "cuda"}}', '{"a": {"device" : "npu"}}'),
        (
            "a.json",
            '{\n\t"devices": ["cuda:0"],\n\t"x": "\\"cuda"}',
            '{\n\t"devices": ["npu:0"],\n\t"x": "\\"cuda"}',
        ),
        ("a.json", '{"env": {"CUDA_VISIBLE_DEVICES": "0"}}', '{"env": {"ASCEND_RT_VISIBLE_DEVICES": "0"}}'),
        ("a.json", '{"args": ["--backend", "nccl"]}', '{"args": ["--backend", "hccl"]}'),
        ("a.toml", 'device = "cuda"  # cuda\n', 'device = "npu"  # cuda\n'),
        (
            "a.toml",
            "[train]\ndist = {backend = 'nccl', n = 1}\n",
            "[train]\ndist = {backend = 'hccl', n = 1}\n",
        ),
        ("a.toml", 'a.device = "cuda"\nl = [\n 1, # cuda\n]\n', 'a.device = "npu"\nl = [\n 1, # cuda\n]\n'),
        ("a.toml", '[[run]]\n"device" = "cuda:1"\n', '[[run]]\n"device" = "npu:1"\n'),
        ("a.ini", "[a]\ndevice = cuda\nbackend:nccl\n", "[a]\ndevice = npu\nbackend:hccl\n"),
        ("a.cfg", "device=cuda:0 ; the first\r\n", "device=npu:0 ; the first\r\n"),
    ],
)
def test_json_toml_and_ini(name: str, before: str, after: str) -> None:
    assert rewritten(name, before) == after


def test_every_vendor_has_its_own_words() -> None:
    for name in VENDORS:
        new = rewritten("a.yaml", "device: cuda\nbackend: nccl\n", name)
        assert new == f"device: {vendor(name).device_type}\nbackend: {vendor(name).dist_backend}\n"


def test_no_word_names_every_device() -> None:
    assert [item[:2] for item in said("a.yaml", "device: cuda\nbackend: nccl\n", "portable")] == [
        ("TF813", "todo"),
        ("TF813", "todo"),
    ]
    assert "Leave the setting out" in messages("a.yaml", "device: cuda\n", "portable")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("mode: cuda\n", "todo"),
        ("device: ${oc.env:DEVICE,cuda}\n", "todo"),
        ("device: CUDA\n", "todo"),
        ("accelerator: gpu\n", "todo"),
        ("trainer:\n  gpus: 4\n", "info"),
        ("cuda: true\n", "info"),
        ("runtime: nvidia\n", "todo"),
        ("image: nvidia/cuda:11.8\n", "todo"),
        ("limits:\n  nvidia.com/gpu: 1\n", "todo"),
        ("distributed_type: MULTI_GPU\n", "todo"),
        ("env:\n  NCCL_SOCKET_IFNAME: eth0\n", "todo"),
    ],
)
def test_what_is_not_certain_is_reported(text: str, kind: str) -> None:
    assert rewritten("a.yaml", text) == text
    assert [item[:2] for item in said("a.yaml", text)] == [("TF813", kind)]


def test_lines_that_nobody_understands_are_reported() -> None:
    assert said("a.yaml", "note: |\n  device: cuda\n") == [("TF802", "todo", "device: cuda")]
    assert said("a.yaml", "x: 1  # cuda\n") == [("TF802", "info", "x: 1  # cuda")]
    assert said("a.json", '{"device": "cuda"') == [("TF802", "todo", '{"device": "cuda"')]


def test_large_files_are_passed_over() -> None:
    data = json.dumps({"device": "cuda", "data": ["cuda"] * 200_000})
    conversion = run("annotations.json", data)
    assert conversion.new_text is None
    assert [item.kind.value for item in conversion.findings] == ["info"]
    assert "too large" in conversion.findings[0].message.en


def test_a_file_without_any_word_of_cuda_is_not_read() -> None:
    assert run("a.json", '{"device": "cpu"').findings == ()


def test_other_encodings_stay() -> None:
    data = "device: cuda  # 设备\n".encode("gb18030")
    conversion = run("a.yaml", data)
    assert conversion.new_text == "device: npu  # 设备\n"


def test_what_other_readers_read_from_an_ini_file() -> None:
    text = "[train]\ndevice = cuda\nbackend = nccl\nnote = cuda\n  and more\n"
    before, after = configparser.ConfigParser(), configparser.ConfigParser()
    before.read_string(text)
    after.read_string(rewritten("a.ini", text))
    assert dict(before["train"]) | {"device": "npu", "backend": "hccl"} == dict(after["train"])


# -- what a real reader reads before and after: only the intended values differ

_NAMES = ("device", "backend", "dist_backend", "map_location", "note", "cuda", "lr", "description", "x y")
_WORDS = st.sampled_from(
    [
        "cuda",
        "cuda:0",
        "cuda:1",
        "nccl",
        "cpu",
        "gloo",
        "on cuda: yes",
        "nccl # no",
        "",
        "a\nb",
        "it's",
        '"q"',
        "- x",
    ]
)
_SCALARS = st.one_of(_WORDS, st.integers(-5, 5), st.booleans(), st.none(), st.floats(0, 1))
_TREES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(_NAMES), inner, max_size=4)
    ),
    max_leaves=14,
)
_CONFIGS = st.dictionaries(st.sampled_from(_NAMES), _TREES, min_size=1, max_size=5)


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, (*path, key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from leaves(value, (*path, index))
    else:
        yield path, tree


_DEVICE_NAMES = {"device", "map_location"}
_BACKEND_NAMES = {"backend", "dist_backend"}


def intended(path: tuple[Any, ...], value: Any) -> Any:
    """What a value should become, told by its key alone."""
    nearest = next((part for part in reversed(path) if isinstance(part, str)), "")
    if value in ("cuda:0", "cuda:1") or (value == "cuda" and nearest in _DEVICE_NAMES):
        return value.replace("cuda", "npu")
    return "hccl" if value == "nccl" and nearest in _BACKEND_NAMES else value


def check(name: str, text: str, load: Callable[[str], Any]) -> None:
    before, after = load(text), load(rewritten(name, text))
    assert [(path, intended(path, value)) for path, value in leaves(before)] == list(leaves(after))


@given(
    tree=_CONFIGS,
    flow=st.sampled_from([None, False, True]),
    indent=st.integers(2, 5),
    width=st.integers(20, 90),
)
@settings(max_examples=150, deadline=None)
def test_yaml_keeps_every_other_value(tree: Any, flow: bool | None, indent: int, width: int) -> None:
    text = yaml.safe_dump(tree, default_flow_style=flow, indent=indent, width=width, sort_keys=False)
    check("a.yaml", text, yaml.safe_load)


@given(tree=_CONFIGS, indent=st.sampled_from([None, 1, 4]))
@settings(max_examples=100, deadline=None)
def test_json_keeps_every_other_value(tree: Any, indent: int | None) -> None:
    check("a.json", json.dumps(tree, indent=indent), json.loads)


@given(tree=_CONFIGS)
@settings(max_examples=100, deadline=None)
def test_toml_keeps_every_other_value(tree: Any) -> None:
    check(
        "a.toml",
        "".join(f"{json.dumps(key)} = {as_toml(value)}\n" for key, value in tree.items()),
        toml.loads,
    )


def as_toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {as_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, (bool, str)):
        return json.dumps(value)
    return repr(float(value or 0))


@given(text=st.text(alphabet="a:-{}[]'\"|>&*!?#, \n\t~%=", max_size=40))
@settings(max_examples=300, deadline=None)
def test_no_text_breaks_a_reader(text: str) -> None:
    for read in (read_yaml, read_json, read_toml):
        try:
            contents = read(text)
        except UnreadableConfigError:
            continue
        for entry in contents.entries:
            assert 0 <= entry.start <= entry.end <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "runs:\n  steps:\n    - run: |\n        # Don't use xdist: cuda tests are unstable\n        python -m unittest\n",
        "a: [1, {{ x }}\n  # runs on cuda only\n",
        "a: [1, {{ x }}  # cuda only\n",
    ],
)
def test_a_comment_that_no_reader_knows_is_still_a_comment(text: str) -> None:
    assert [item.kind.value for item in run("action.yml", text).findings] == ["info"]


@pytest.mark.parametrize(
    "text", ["Global:\n  device: gpu\n", "device: gpu:0\n", "Global:\n  use_gpu: true\n"]
)
def test_a_gpu_in_the_words_of_another_program_is_not_passed_over(text: str) -> None:
    (item,) = run("config.yml", text).findings
    assert item.kind.value == "info"
    assert "PaddlePaddle" in item.message.en
