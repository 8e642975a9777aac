"""TF103: .cuda() on tensors, modules and losses."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, findings, rewritten, said_of, vendor


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("flag = args.cuda", id="a flag of the user's"),
        pytest.param("if args.cuda:\n    pass", id="a flag of the user's in a test"),
        pytest.param("getattr(args, 'cuda')", id="a flag by its name"),
        pytest.param("getattr(args, 'cuda', False)", id="a flag by its name, with a default"),
        pytest.param("self.cuda = True", id="an attribute that is set"),
        pytest.param("# model.cuda()", id="a comment"),
        pytest.param("print('call model.cuda() first')", id="a message"),
        pytest.param("'''model.cuda()'''", id="a docstring"),
        pytest.param("use(cuda=True)", id="a keyword"),
        pytest.param("cuda(tensor)", id="a function of that name"),
        pytest.param("x.cuda_()", id="a longer name"),
        pytest.param("x.to_cuda()", id="a name that ends in it"),
        pytest.param("import mylib\nmylib.cuda(tensor)", id="a function of a module"),
        pytest.param("import pycuda.driver as drv\ndrv.cuda(1)", id="pycuda"),
        pytest.param("from .cuda import x\nx(1)", id="the user's own cuda module"),
        pytest.param("source = r'''\ntensor.cuda();\n'''", id="C++ text in a string"),
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
        ("x = x.cuda(device=0)", "x = x.npu(device=0)"),
        ("loss = torch.nn.CrossEntropyLoss().cuda(gpu)", "loss = torch.nn.CrossEntropyLoss().npu(gpu)"),
        ("xs = [x.cuda() for x in xs]", "xs = [x.npu() for x in xs]"),
        ("xs = {k: v.cuda() for k, v in xs.items()}", "xs = {k: v.npu() for k, v in xs.items()}"),
        ("xs = list(map(lambda t: t.cuda(), xs))", "xs = list(map(lambda t: t.npu(), xs))"),
        ("a.b[0].cuda().half()", "a.b[0].npu().half()"),
        ("a.cuda().cuda(0)", "a.npu().npu(0)"),
        ("if args.cuda: model.cuda()", "if args.cuda: model.npu()"),
        ("x . cuda ( )", "x . npu ( )"),
        (
            "x = (model\n    .cuda()  # .cuda()\n    .half())",
            "x = (model\n    .npu()  # .cuda()\n    .half())",
        ),
        ("torch.Tensor.cuda(x)", "torch.Tensor.npu(x)"),
        ("ys = map(torch.Tensor.cuda, xs)", "ys = map(torch.Tensor.npu, xs)"),
        ("torch.nn.Module.cuda(m)", "torch.nn.Module.npu(m)"),
        ("super().cuda(device)", "super().npu(device)"),
        ("print(f'{x.cuda()!r:>{w}} cuda')", "print(f'{x.npu()!r:>{w}} cuda')"),
        ("设备.cuda(); é = x.cuda()", "设备.npu(); é = x.npu()"),
        ("yes = x.cuda() is x", "yes = x.npu() is x"),
    ],
)
def test_rewrites(before: str, after: str) -> None:
    assert expression(before) == after


@pytest.mark.parametrize("name", VENDORS)
def test_every_vendor_by_its_method(name: str) -> None:
    assert expression("x = x.cuda(1)", name) == f"x = x.{vendor(name).tensor_method}(1)"


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
        "Own method `cuda()`. The class defines `cuda()` itself, so the call stays."
    ]


def test_what_is_left_is_said() -> None:
    assert said_of("import mylib\nmylib.cuda(x)", rule="TF103") == [("TF103", "info", "mylib.cuda")]
    assert said_of("x.cuda()") == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = x.cuda()", "x = x.to(DEVICE_TYPE)"),
        ("x = x.cuda(0)", 'x = x.to(f"{DEVICE_TYPE}:0")'),
        ("x = x.cuda(non_blocking=True)", "x = x.to(DEVICE_TYPE, non_blocking=True)"),
        ("x = x.cuda(gpu)", 'x = x.to(gpu if gpu is not None and DEVICE_TYPE != "cpu" else DEVICE_TYPE)'),
        (
            "x = x.cuda(a.gpu, non_blocking=b)",
            'x = x.to(a.gpu if a.gpu is not None and DEVICE_TYPE != "cpu" else DEVICE_TYPE, non_blocking=b)',
        ),
        (
            "x = x.cuda(device=gpu)",
            'x = x.to(device=gpu if gpu is not None and DEVICE_TYPE != "cpu" else DEVICE_TYPE)',
        ),
        ("x = x.cuda(gpus[0])", 'x = x.to(gpus[0] if DEVICE_TYPE != "cpu" else DEVICE_TYPE)'),
        ("x = x.cuda('cuda:1')", "x = x.to(f'{DEVICE_TYPE}:1')"),
        ("x = x.cuda(0, True)", 'x = x.to(f"{DEVICE_TYPE}:0", non_blocking=True)'),
    ],
)
def test_portable(before: str, after: str) -> None:
    assert expression(before, "portable") == after


def test_portable_asks_about_unpacked_arguments() -> None:
    assert expression("x.cuda(*where)", "portable") == "x.cuda(*where)"
    assert said_of("x.cuda(*where)", "portable") == [("TF103", "todo", "x.cuda(*where)")]
