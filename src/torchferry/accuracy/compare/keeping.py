"""What is kept of pairs once they are judged: so little that memory does not depend on the size of the records."""

from __future__ import annotations

from collections.abc import Iterable

from torchferry.accuracy.compare.model import Difference, Pair, Verdict
from torchferry.accuracy.compare.rows import PairRows, packed
from torchferry.accuracy.model import Call, TensorRecord

DIFFERENCES = 100_000  # beyond so many, figures are kept only of calls that are not as they should be
_UNREMARKABLE = (Verdict.EQUAL, Verdict.NORMAL, Verdict.INHERITED)


class Keeper:
    """Makes pairs small, and counts."""

    def __init__(self) -> None:
        self.nbytes = 0  # that were measured, of both sides
        self.left_out = 0  # calls whose figures were not kept
        self._kept = 0

    def keep(self, pairs: Iterable[Pair]) -> PairRows:
        """All pairs, each made small."""
        return packed(map(self._small, pairs))

    def _small(self, pair: Pair) -> Pair:
        self.nbytes += sum(
            each.mine.nbytes + each.golden.nbytes
            for each in (*pair.inputs, *pair.outputs)
            if each.metrics is not None
        )
        mine, golden = _call(pair.mine, pair), _call(pair.golden, pair)
        if self._kept > DIFFERENCES and pair.judgement.verdict in _UNREMARKABLE:
            self.left_out += bool(pair.outputs)
            return Pair(mine, golden, pair.how, judgement=pair.judgement)
        self._kept += len(pair.inputs) + len(pair.outputs)
        inputs, outputs = (tuple(map(_difference, each)) for each in (pair.inputs, pair.outputs))
        return Pair(mine, golden, pair.how, inputs, outputs, pair.judgement)


def _call(call: Call | None, pair: Pair) -> Call | None:
    """Without what it was called with; of results only those that no difference tells of."""
    if call is None:
        return None
    outputs = () if pair.outputs or pair.judgement.verdict in _UNREMARKABLE else call.outputs
    return Call(
        call.number, call.operator, call.step, call.phase, call.model, call.module, call.place, call.node,
        outputs=tuple(map(_tensor, outputs)),
    )  # fmt: skip


def _difference(difference: Difference) -> Difference:
    mine, golden = _tensor(difference.mine), _tensor(difference.golden)
    return Difference(mine, golden, difference.metrics, difference.picture, difference.reason)


def _tensor(tensor: TensorRecord) -> TensorRecord:
    """Where its bytes lie is of no more use; without that, most are equal to one that is there already."""
    return TensorRecord(
        tensor.name, tensor.dtype, tensor.shape, tensor.stride, tensor.device, tensor.role,
        is_dense=tensor.is_dense, unread=tensor.unread, statistics=tensor.statistics,
    )  # fmt: skip
