"""Tensors whose memory holds something else than their elements: conjugates, negatives, nothing at all."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.accuracy.record.recording import call_of, inputs_of, recorded
from torchferry.accuracy.compare.comparing import compare_files
from torchferry.accuracy.judge.model import Verdict
from torchferry.accuracy.model import Kept


def test_a_conjugate_is_not_what_lies_in_memory(tmp_path: Path) -> None:
    """Both come from the same memory, one after the other."""
    x = torch.complex(torch.randn(4, 5), torch.randn(4, 5))
    with recorded(tmp_path, lambda: [x * 2, x.conj().clone(), x.t() @ x, x.mH @ x]) as record:
        assert torch.equal(record.tensor(call_of(record, "clone").inputs[0]), x.conj().resolve_conj())
        plain, conjugate = inputs_of(record, "mm")
    assert torch.equal(plain, x.t()) and torch.equal(conjugate, x.mH.resolve_conj())


def test_a_negative_is_not_what_lies_in_memory(tmp_path: Path) -> None:
    x = torch.complex(torch.randn(6), torch.randn(6))
    with recorded(tmp_path, lambda: [x.imag.clone(), x.conj().imag.clone()]) as record:
        plain, negative = inputs_of(record, "clone")
    assert torch.equal(plain, x.imag) and torch.equal(negative, -x.imag)


@pytest.mark.parametrize("kept", list(Kept))
def test_zeros_that_have_no_memory(kept: Kept, tmp_path: Path) -> None:
    """Autograd makes them for gradients that are zero; to read them would end the process."""

    def program() -> None:
        zeros = torch._efficientzerotensor(3, 4)
        assert zeros.data_ptr() == 0
        torch.ones(3, 4) + zeros

    with recorded(tmp_path, program, kept) as record:
        (zeros,) = call_of(record, "_efficientzerotensor").outputs
        assert zeros.unread == "no memory" and zeros.offset is None


def test_views_of_nothing_are_compared(tmp_path: Path) -> None:
    """Nobody has read them, and nothing is in them."""

    def program() -> None:
        torch.ones(0, 3).t()
        torch.ones(2) + 1

    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        recorded(tmp_path / name, program).close()
    (comparison,) = compare_files(tmp_path / "one" / "record.h5", tmp_path / "other" / "record.h5")
    assert {pair.judgement.verdict for pair in comparison.pairs} == {Verdict.EQUAL}
