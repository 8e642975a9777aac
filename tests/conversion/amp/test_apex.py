"""The apex form: amp.initialize, scale_loss, options, checkpoints."""

from __future__ import annotations

import pytest

from tests.conversion.amp.amping import amped, check, converted, left
from torchferry.conversion.settings import AmpForm


def test_one_model_with_a_command_line() -> None:
    check(
        """
        import argparse
        import torch

        parser = argparse.ArgumentParser()
        parser.add_argument('--lr', type=float)

        def train(model, optimizer, x):
            loss = model(x)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

        def main():
            args = parser.parse_args()
            model = Net().cuda()
            model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
            optimizer = torch.optim.SGD(model.parameters(), args.lr)
            checkpoint = torch.load('x')
            optimizer.load_state_dict(checkpoint['optimizer'])
            train(model, optimizer, x)
            torch.save({'optimizer': optimizer.state_dict()}, 'x')
        """,
        """
        import argparse
        import torch
        from apex import amp

        parser = argparse.ArgumentParser()
        parser.add_argument('--lr', type=float)
        parser.add_argument('--opt-level', default='O2', type=str, help='level of apex: O0, O1, O2 or O3')
        parser.add_argument('--loss-scale', default='dynamic', type=str, help='loss scale of apex: a number or dynamic')

        def train(model, optimizer, x):
            loss = model(x)
            optimizer.zero_grad()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)
            optimizer.step()

        def main():
            args = parser.parse_args()
            model = Net().cuda()
            optimizer = torch.optim.SGD(model.parameters(), args.lr)
            model, optimizer = amp.initialize(model, optimizer, opt_level=args.opt_level, loss_scale=args.loss_scale)
            model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
            checkpoint = torch.load('x')
            optimizer.load_state_dict(checkpoint['optimizer'])
            if 'amp' in checkpoint:
                amp.load_state_dict(checkpoint['amp'])
            train(model, optimizer, x)
            torch.save({'optimizer': optimizer.state_dict(), 'amp': amp.state_dict()}, 'x')
        """,
        AmpForm.APEX,
    )


def test_two_models_and_two_losses() -> None:
    check(
        """
        import torch
        netG = G().cuda()
        netD = D().cuda()
        optD = torch.optim.Adam(netD.parameters())
        optG = torch.optim.Adam(netG.parameters())
        for x in data:
            netD.zero_grad()
            errD = netD(x)
            errD.backward()
            optD.step()
            optG.zero_grad()
            errG = netD(netG(x))
            errG.backward()
            optG.step()
        """,
        """
        import torch
        from apex import amp
        netG = G().cuda()
        netD = D().cuda()
        optD = torch.optim.Adam(netD.parameters())
        optG = torch.optim.Adam(netG.parameters())
        [netD, netG], [optD, optG] = amp.initialize([netD, netG], [optD, optG], opt_level="O2", loss_scale="dynamic", num_losses=2)
        for x in data:
            optD.zero_grad()
            errD = netD(x)
            with amp.scale_loss(errD, optD, loss_id=0) as scaled_loss:
                scaled_loss.backward()
            optD.step()
            optG.zero_grad()
            errG = netD(netG(x))
            with amp.scale_loss(errG, optG, loss_id=1) as scaled_loss:
                scaled_loss.backward()
            optG.step()
        """,
        AmpForm.APEX,
    )


def test_a_model_that_is_moved_after_its_optimizer_is_made() -> None:
    text = amped(
        """
        import torch
        def main():
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            model.cuda()
            for x in data:
                loss = model(x)
                loss.backward()
                optimizer.step()
        """,
        AmpForm.APEX,
    )
    assert "    model.cuda()\n    model, optimizer = amp.initialize(model, optimizer, " in text


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        pytest.param(
            "def train(model, optimizer):\n    loss = model(x)\n    loss.backward()\n    optimizer.step()\n",
            "not made in this module",
            id="the optimizer comes from elsewhere",
        ),
        pytest.param(
            "def main():\n    with where:\n        model = DistributedDataParallel(model)\n"
            "    optimizer = torch.optim.SGD(model.parameters(), 1)\n    loss = model(x)\n    loss.backward()\n"
            "    optimizer.step()\n",
            "move the wrapper",
            id="wrapped in a block",
        ),
        pytest.param(
            "def main():\n    if parallel:\n        model = DistributedDataParallel(model)\n    parallel = False\n"
            "    optimizer = torch.optim.SGD(model.parameters(), 1)\n    loss = model(x)\n    loss.backward()\n"
            "    optimizer.step()\n",
            "move the wrapper",
            id="the question has another answer further down",
        ),
        pytest.param(
            "def main():\n    model = torch.nn.DataParallel(model).cuda()\n"
            "    optimizer = torch.optim.SGD(model.parameters(), 1)\n    loss = model(x)\n    loss.backward()\n"
            "    optimizer.step()\n",
            "--data-parallel single",
            id="DataParallel that is moved at once",
        ),
        pytest.param(
            "def main():\n    model = torch.nn.DataParallel(model).npu()\n"
            "    optimizer = torch.optim.SGD(model.parameters(), 1)\n    loss = model(x)\n    loss.backward()\n"
            "    optimizer.step()\n",
            "--data-parallel single",
            id="the same in a program that was converted before",
        ),
    ],
)
def test_unclear(source: str, reason: str) -> None:
    (found,) = left(f"import torch\n{source}", AmpForm.APEX)
    assert found[0] == "todo" and reason in found[2]


def test_wrappers_in_branches_go_below_initialize() -> None:
    """pytorch/examples' imagenet, as the Ascend guide changes it"""
    check(
        """
        import torch
        def main(args):
            if args.distributed:
                if args.gpu is not None:
                    model.cuda(args.gpu)
                    model = DistributedDataParallel(model, device_ids=[args.gpu])
                else:
                    model = DistributedDataParallel(model)
            else:
                model.cuda()
            optimizer = torch.optim.SGD(model.parameters(), 1)
            for x in data:
                loss = model(x)
                loss.backward()
                optimizer.step()
        """,
        """
        import torch
        from apex import amp
        def main(args):
            if args.distributed:
                if args.gpu is not None:
                    model.cuda(args.gpu)
                else:
                    pass
            else:
                model.cuda()
            optimizer = torch.optim.SGD(model.parameters(), 1)
            model, optimizer = amp.initialize(model, optimizer, opt_level="O2", loss_scale="dynamic")
            if args.distributed and args.gpu is not None:
                model = DistributedDataParallel(model, device_ids=[args.gpu])
            if args.distributed and args.gpu is None:
                model = DistributedDataParallel(model)
            for x in data:
                loss = model(x)
                with amp.scale_loss(loss, optimizer) as scaled_loss:
                    scaled_loss.backward()
                optimizer.step()
        """,
        AmpForm.APEX,
    )


def test_a_wrapper_behind_the_question_for_a_device() -> None:
    text = amped(
        """
        import torch
        def main(args):
            if not torch.cuda.is_available():
                print("slow")
            elif args.distributed:
                model = DistributedDataParallel(model)
            optimizer = torch.optim.SGD(model.parameters(), 1)
            for x in data:
                loss = model(x)
                loss.backward()
                optimizer.step()
        """,
        AmpForm.APEX,
    )
    assert "    if torch.cuda.is_available() and args.distributed:\n        model = Distributed" in text


def test_an_attribute_is_not_the_optimizer_that_a_function_is_given() -> None:
    source = """
        import torch
        class Engine:
            def __init__(self, net):
                self.opt = torch.optim.Adam(net.parameters())
        def train(net, opt):
            loss = net(x)
            loss.backward()
            opt.step()
        """
    ((kind, place, _),) = left(source, AmpForm.APEX)
    assert (kind, place) == ("todo", "opt.step()")


def test_what_only_the_vendors_apex_takes_is_told() -> None:
    source = """
    import torch
    def main():
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for x in data:
            loss = model(x)
            loss.backward()
            optimizer.step()
    """
    told = [item.message.en for item in converted(source, AmpForm.APEX).findings if item.kind.value == "info"]
    assert any("combine_grad=True" in message for message in told)


def test_an_optimizer_that_is_made_in_the_loop_itself() -> None:
    """amp.initialize takes a model once."""
    source = """
    import torch
    for x, y in data:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        criterion(model(x), y).backward()
        optimizer.step()
    """
    ((kind, _, message),) = left(source, AmpForm.APEX)
    assert kind == "todo" and "is not made once before all its steps" in message
