"""TF111: what needs an accelerator is left out on the CPU, in code for every device."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import expression, rewritten, said_of

TO = "portable"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if torch.cuda.is_available(): torch.cuda.synchronize()", "if torch.accelerator.is_available(): torch.accelerator.synchronize()"),
        ("if device.type == 'cuda': torch.cuda.empty_cache()", "if device.type != 'cpu': torch.accelerator.empty_cache()"),
        ("if args.gpu is not None: torch.cuda.set_device(args.gpu)", "if args.gpu is not None: torch.accelerator.set_device_index(args.gpu)"),
        ("n = torch.cuda.memory_allocated() if torch.cuda.is_available() else 0", "n = torch.accelerator.memory_allocated() if torch.accelerator.is_available() else 0"),
        ("n = torch.cuda.device_count()", "n = torch.accelerator.device_count()"),
        ("sync = torch.cuda.synchronize", "sync = torch.accelerator.synchronize"),
    ],
)  # fmt: skip
def test_noop_where_there_is_a_condition(before: str, after: str) -> None:
    assert expression(before, TO) == after


def test_a_vendor_needs_none() -> None:
    assert expression("torch.cuda.synchronize()", "ascend") == "torch.npu.synchronize()"
    assert expression("torch.cuda.synchronize()", "ascend+cuda") == "ferry_device.synchronize()"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.cuda.synchronize()", 'DEVICE_TYPE != "cpu" and torch.accelerator.synchronize()'),
        ("torch.cuda.set_device(rank)", 'DEVICE_TYPE != "cpu" and torch.accelerator.set_device_index(rank)'),
        (
            "torch.cuda.manual_seed_all(seed)",
            'DEVICE_TYPE != "cpu" and torch.get_device_module().manual_seed_all(seed)',
        ),
        (
            "clean = lambda: torch.cuda.empty_cache()",
            'clean = lambda: (DEVICE_TYPE != "cpu" and torch.accelerator.empty_cache())',
        ),
        (
            "mb = torch.cuda.max_memory_allocated() / 2**20",
            'mb = (torch.accelerator.max_memory_allocated() if DEVICE_TYPE != "cpu" else 0) / 2**20',
        ),
        (
            "free, total = torch.cuda.mem_get_info()",
            'free, total = (torch.accelerator.get_memory_info() if DEVICE_TYPE != "cpu" else (0, 0))',
        ),
        (
            "if verbose:\n    torch.cuda.synchronize()",
            'if verbose:\n    DEVICE_TYPE != "cpu" and torch.accelerator.synchronize()',
        ),
    ],
)
def test_left_out_on_the_cpu(before: str, after: str) -> None:
    assert expression(before, TO) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            'print(f"{torch.cuda.memory_allocated()} bytes")',
            "print(f\"{(torch.accelerator.memory_allocated() if DEVICE_TYPE != 'cpu' else 0)} bytes\")",
        ),
        (
            "print(f'on {torch.cuda.get_device_name()}')",
            """print(f'on {(torch.get_device_module().get_device_name() if DEVICE_TYPE != "cpu" else "CPU")}')""",
        ),
        (
            'print(f"{x.is_cuda} {y.cuda(0)}")',
            "print(f\"{(x.device.type != 'cpu')} {y.to(f'{DEVICE_TYPE}:0')}\")",
        ),
    ],
)
def test_quotes_inside_f_strings(before: str, after: str) -> None:
    """Python before 3.12 does not take the f-string's own quotes there."""
    assert expression(before, TO) == after


def test_under_another_name() -> None:
    text = rewritten("import torch\nfrom torch import cuda\n\ncuda.synchronize()\n", TO)
    assert text.endswith('\nDEVICE_TYPE != "cpu" and accelerator.synchronize()\n')


@pytest.mark.parametrize(
    "call", ["torch.cuda.Stream()", "torch.cuda.Event()", "torch.cuda.get_device_properties(0)"]
)
def test_what_has_no_stand_in_is_said(call: str) -> None:
    assert [item[:2] for item in said_of(f"x = {call}", TO)] == [("TF111", "risk")]
    assert said_of(f"x = {call} if torch.cuda.is_available() else None", TO) == []
