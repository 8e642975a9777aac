"""TF201: strings that name the nccl backend."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, findings, said_of, vendor

_DIST = "import torch.distributed as dist\n"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("'''nccl'''", id="a docstring"),
        pytest.param("# nccl", id="a comment"),
        pytest.param("print('nccl')", id="a message"),
        pytest.param("raise ValueError('nccl')", id="an error"),
        pytest.param(
            "parser.add_argument('--nccl', action='store_true', help='nccl')", id="a flag and its help"
        ),
        pytest.param("state['nccl']", id="a key"),
        pytest.param("x = 'nccl_socket'", id="a longer word"),
        pytest.param("x = 'use nccl'", id="a sentence"),
        pytest.param("use_nccl = True", id="an identifier"),
        pytest.param("ctypes.util.find_library('nccl')", id="the library itself"),
        pytest.param("getattr(x, 'nccl')", id="an attribute"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source


@pytest.mark.parametrize(
    "source",
    [
        "torch.distributed.init_process_group('nccl')",
        f"{_DIST}dist.init_process_group(backend='nccl', init_method='env://')",
        f"{_DIST}dist.init_process_group('nccl', rank=0)",
        f"{_DIST}if dist.get_backend() == 'nccl': pass",
        f"{_DIST}if 'nccl' in dist.get_backend(): pass",
        f"{_DIST}g = dist.new_group(ranks, backend='nccl')",
        f"{_DIST}b = dist.Backend('nccl')",
        "parser.add_argument('--dist-backend', default='nccl', type=str)",
        "parser.add_argument('--backend', choices=['nccl', 'gloo'], default='nccl')",
        "@click.option('--backend', default='nccl')\ndef f(backend): pass",
        "backend = 'nccl' if ok else 'gloo'",
        "def f(backend='nccl'): pass",
        "class C:\n    dist_backend: str = 'nccl'",
        "cfg = dict(dist_params=dict(backend='nccl'))",
        "cfg = {'backend': 'nccl'}",
        "os.environ['BACKEND'] = 'nccl'",
        "os.environ.setdefault('BACKEND', 'nccl')",
        "b = os.environ.get('DIST_BACKEND', 'nccl')",
        "b = 'nccl'\ntorch.distributed.init_process_group(b)",
        "init_dist('pytorch', backend='nccl')",
    ],
)
def test_rewrites(source: str) -> None:
    assert expression(source) == source.replace("nccl", "hccl")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "torch.distributed.init_process_group('cpu:gloo,cuda:nccl')",
            "torch.distributed.init_process_group('cpu:gloo,npu:hccl')",
        ),
        (
            "torch.distributed.init_process_group('cuda:nccl')",
            "torch.distributed.init_process_group('npu:hccl')",
        ),
        ("b = 'cuda:nccl,cpu:gloo'", "b = 'npu:hccl,cpu:gloo'"),
    ],
)
def test_one_backend_per_device(before: str, after: str) -> None:
    assert expression(before) == after


@pytest.mark.parametrize("name", VENDORS)
def test_every_vendor(name: str) -> None:
    backend, device = vendor(name).dist_backend, vendor(name).device_type
    assert expression("def f(backend='nccl'): pass", name) == f"def f(backend='{backend}'): pass"
    assert expression("b = 'cpu:gloo,cuda:nccl'", name) == f"b = 'cpu:gloo,{device}:{backend}'"


def test_what_is_left_is_said() -> None:
    assert said_of("x = {'nccl': 1}", rule="TF201") == [("TF201", "todo", "'nccl'")]
    assert said_of("print('nccl')") == []


def test_portable_asks_torch() -> None:
    after = (
        "torch.distributed.init_process_group(torch.distributed.get_default_backend_for_device(DEVICE_TYPE))"
    )
    assert expression("torch.distributed.init_process_group('nccl')", "portable") == after


def test_portable_says_that_it_leaves_a_list() -> None:
    source = "torch.distributed.init_process_group('cpu:gloo,cuda:nccl')"
    assert expression(source, "portable") == source
    assert [rule for rule, _, _ in said_of(source, "portable")] == ["TF201"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "torch.distributed.init_process_group(backend='NCCL')",
            "torch.distributed.init_process_group(backend='HCCL')",
        ),
        ("torch.distributed.init_process_group('NCCL')", "torch.distributed.init_process_group('HCCL')"),
        ("backend = 'NCCL'", "backend = 'HCCL'"),
        ("table.add_row('NCCL', version)", "table.add_row('NCCL', version)"),
        ("print('NCCL')", "print('NCCL')"),
    ],
)
def test_upper_case(before: str, after: str) -> None:
    assert expression(before) == after


def test_an_upper_case_label_is_left_to_the_user() -> None:
    assert [item.kind.value for item in findings("table.add_row('NCCL', version)\n", rule="TF201")] == [
        "todo"
    ]


def test_a_table_that_has_the_target_keeps_the_line_of_cuda() -> None:
    source = 'backends = {"hpu": "hccl", "cuda": "nccl", "npu": "hccl"}'
    assert expression(source) == source
    assert (
        expression('backends = {"cuda": "nccl", "xpu": "ccl"}') == 'backends = {"npu": "hccl", "xpu": "ccl"}'
    )
