"""TF103: .cuda() on tensors, modules and losses."""

from __future__ import annotations

import pytest

from tests.convert.rewriting import expression, findings, rewritten


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("flag = args.cuda", id="a flag of the user's"),
        pytest.param("self.cuda = True", id="an attribute that is set"),
        pytest.param("# model.cuda()", id="a comment"),
        pytest.param("print('call model.cuda() first')", id="a message"),
        pytest.param("use(cuda=True)", id="a keyword"),
        pytest.param("import mylib\nmylib.cuda(tensor)", id="a function of a module"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("model.cuda()", "model.npu()"),
        ("model = model.cuda(args.gpu)", "model = model.npu(args.gpu)"),
        ("x = x.cuda(args.gpu, non_blocking=True)", "x = x.npu(args.gpu, non_blocking=True)"),
        ("loss = torch.nn.CrossEntropyLoss().cuda(gpu)", "loss = torch.nn.CrossEntropyLoss().npu(gpu)"),
        ("xs = [x.cuda() for x in xs]", "xs = [x.npu() for x in xs]"),
        ("a.b[0].cuda().half()", "a.b[0].npu().half()"),
    ],
)
def test_rewrites(before: str, after: str) -> None:
    assert expression(before) == after


def test_own_method_keeps_its_name_and_answers_to_the_new_one() -> None:
    before = """\
        class Batch:
            def cuda(self):
                self.x = self.x.cuda()
                return self

            def move(self):
                return self.cuda()
        """
    after = """\
class Batch:
    def cuda(self):
        self.x = self.x.npu()
        return self
    npu = cuda

    def move(self):
        return self.cuda()
"""
    assert rewritten(before) == after
    assert [item.message.en for item in findings(before, rule="TF103")] == [
        "left as it is: this class defines its own cuda()"
    ]
