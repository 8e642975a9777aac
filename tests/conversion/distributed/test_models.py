"""Which models are wrapped, where, and what is asked of the model inside."""

from __future__ import annotations

import pytest

from tests.conversion.distributed.programs import HEAD, MAIN, changed, changes, convert, refusal, script, told
from torchferry.conversion.settings import Distributed
from torchferry.finding import Kind

IDS = "device_ids=[local_rank] if torch.cuda.is_available() else None"
WRAP = f"+ model = DistributedDataParallel(model, {IDS})"


def model_lines(source: str, **settings: bool | str) -> list[str]:
    return [line for line in changed(source, **settings) if "loader = " not in line]


@pytest.mark.parametrize(
    "model",
    [
        "model = Net().to(device)",
        "model = Net()\nmodel.cuda()",
        "model = Net()\nif torch.cuda.is_available():\n    model = model.cuda()",
        "if big:\n    model = Net(9)\nelse:\n    model = Net()\nmodel = model.to(device)",
        "model = Net().cuda()\nmodel.load_state_dict(torch.load('start.pt'))",
        "model = Net().cuda()\nmodel.head = nn.Linear(9, 9).cuda()",
        "model = Net().cuda()\nfor parameter in model.body.parameters():\n    parameter.requires_grad = False",
        "model = Net().cuda()\nmodel = torch.compile(model)",
    ],
)
def test_the_wrap_follows_all_that_prepares_the_model(model: str) -> None:
    text = convert(script(model=model), Distributed(MAIN)).new_text or ""
    assert f"{model}\n{WRAP[2:]}\noptimizer = " in text


def test_batchnorm_over_all_cards() -> None:
    assert model_lines(script(), sync=True) == [
        "+ model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)",
        WRAP,
    ]


@pytest.mark.parametrize(
    "choice",
    [
        "parser.add_argument('--no-cuda', action='store_true')",
        "parser.add_argument('--device', default='cuda')",
        "if args.cuda:\n    print()",
        "device = torch.device(settings['device'])",
    ],
)
def test_a_model_that_may_stay_on_the_cpu_in_spite_of_a_card(choice: str) -> None:
    assert model_lines(script(device=choice)) == [
        "+ model = DistributedDataParallel(",
        "+     model,",
        "+     device_ids=[local_rank] if next(model.parameters()).is_cuda else None,",
        '+     process_group=None if next(model.parameters()).is_cuda else dist.new_group(backend="gloo"),',
        "+ )",
    ]


def test_the_number_of_a_card_is_no_choice_of_the_cpu() -> None:
    source = script(device="parser.add_argument('--gpu', type=int, default=0)")
    assert model_lines(source) == [WRAP]


def test_a_model_for_each_fold() -> None:
    source = (
        HEAD
        + """
for fold in range(5):
    model = Net()
    model.cuda()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(dataset, 8)
    for epoch in range(9):
        for x in loader:
            model(x.cuda()).sum().backward()
            optimizer.step()
"""
    )
    text = convert(source, Distributed(MAIN)).new_text or ""
    assert f"    model.cuda()\n    {WRAP[2:]}\n    optimizer = " in text


def test_names_with_types() -> None:
    source = script(
        model="model: nn.Module = Net().cuda()",
        loader="loader: DataLoader = DataLoader(dataset, 8)",
        end="print(model.width)",
    )
    assert WRAP in model_lines(source)
    assert "+ print(model.module.width)" in model_lines(source)


def test_an_object_that_is_called_with_the_model() -> None:
    source = script(
        device="""
        class Keeper:
            def __call__(self, net):
                self.keep(net)

            def keep(self, net):
                torch.save(net.state_dict(), "best.pt")
        """,
        end="keeper = Keeper()\nkeeper(model)",
    )
    assert "+         self.keep(net)" not in model_lines(source)
    assert any("torch.save(net.module.state_dict()" in line for line in model_lines(source))


def test_running_means_of_each_process_are_a_risk() -> None:
    twice = script(
        device="class Body(nn.Module):\n    norm = nn.BatchNorm1d",
        step="(model(x.cuda()) - model(x.cuda())).sum().backward()",
    )
    assert told(twice, Kind.RISK) == ["model = Net().cuda()"]
    assert told(twice.replace("BatchNorm1d", "LayerNorm"), Kind.RISK) == []


def test_a_frozen_teacher_is_not_wrapped() -> None:
    source = script(between="teacher = Net().cuda().eval()")
    assert model_lines(source) == [WRAP]


def test_checkpoints_hold_the_names_that_they_held_before() -> None:
    source = script(
        end="""
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
        torch.save(model, "whole.pt")
        print(model.width, model.generate(3))
        model.eval()
        """
    )
    assert model_lines(source) == [
        WRAP,
        '- torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")',
        '- torch.save(model, "whole.pt")',
        "- print(model.width, model.generate(3))",
        "+ if dist.get_rank() == 0:",
        '+     torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")',
        '+     torch.save(model.module, "whole.pt")',
        "+ print(model.module.width, model.module.generate(3))",
    ]


def test_what_is_loaded_after_the_training_waits_for_the_first_process() -> None:
    source = script(end='model.load_state_dict(torch.load("best.pt"))')
    assert model_lines(source) == [
        WRAP,
        '- model.load_state_dict(torch.load("best.pt"))',
        "+ dist.barrier()",
        '+ model.module.load_state_dict(torch.load("best.pt"))',
    ]


def test_a_function_that_is_also_called_before_the_wrap() -> None:
    source = script(
        device="""
        def count(net):
            return len(net.layers)
        """,
        model="model = Net().cuda()\nprint(count(model))",
        end="print(count(model))",
    )
    assert '+     return len(getattr(net, "module", net).layers)' in model_lines(source)


GAN = """
import torch
from torch import optim
from torch.utils.data import DataLoader
from things import G, D, dataset

netG = G().cuda()
netD = D().cuda()
optD, optG = optim.Adam(netD.parameters()), optim.Adam(netG.parameters())
for epoch in range(9):
    for real in DataLoader(dataset, 8):
        fake = netG(torch.randn(8, 4).cuda())
        (netD(real.cuda()) - netD(fake.detach())).mean().backward()
        optD.step()
        netD(fake).mean().backward()
        optG.step()
"""


def test_a_model_that_is_called_twice_keeps_its_buffers() -> None:
    lines = changes(
        GAN.replace("for real in DataLoader(dataset, 8)", "for real in loader").replace(
            "for epoch", "loader = DataLoader(dataset, 8)\nfor epoch"
        )
    ).splitlines()
    assert f"+ netG = DistributedDataParallel(netG, {IDS})" in lines
    assert f"+ netD = DistributedDataParallel(netD, {IDS}, broadcast_buffers=False)" in lines


@pytest.mark.parametrize(
    ("before", "removed"),
    [
        ("model = Net().cuda()\nmodel = nn.DataParallel(model)", ["- model = nn.DataParallel(model)"]),
        (
            "model = Net().cuda()\nif torch.cuda.device_count() > 1:\n    model = nn.DataParallel(model)",
            ["- if torch.cuda.device_count() > 1:", "-     model = nn.DataParallel(model)"],
        ),
        (
            "model = Net()\nif many:\n    print('many')\n    model = nn.DataParallel(model, device_ids=[0, 1])\nmodel.to(device)",
            ["-     model = nn.DataParallel(model, device_ids=[0, 1])"],
        ),
        (
            "model = torch.nn.DataParallel(Net()).cuda()",
            ["- model = torch.nn.DataParallel(Net()).cuda()", "+ model = Net().cuda()"],
        ),
    ],
)
def test_data_parallel_gives_way(before: str, removed: list[str]) -> None:
    assert model_lines(script(model=before)) == [*removed, WRAP]


def test_whoever_asks_for_data_parallel_gets_the_new_wrapper() -> None:
    source = script(end="bare = model.module if isinstance(model, nn.DataParallel) else model")
    assert (
        model_lines(source)[-1]
        == "+ bare = model.module if isinstance(model, DistributedDataParallel) else model"
    )


def test_the_model_that_the_user_names() -> None:
    source = script(between="critic = Net().cuda()\ncritic_optimizer = optim.Adam(critic.parameters())")
    named = script(
        between="critic = Net().cuda()\ncritic_optimizer = optim.Adam(critic.parameters())",
        step="(model(x.cuda()) + critic(x.cuda())).sum().backward()",
    )
    assert "critic is trained, but never called" in refusal(source)
    assert [line for line in model_lines(named, model="critic") if "DistributedDataParallel" in line] == [
        f"+ critic = DistributedDataParallel(critic, {IDS})"
    ]
    assert "--model-name nothing: no variable of this name" in refusal(source, model="nothing")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (script(model="model = Net()"), "model is not moved to a device"),
        (script(step="model.loss(x.cuda()).backward()"), "only sees calls of forward"),
        (
            script().replace("optim.SGD(model.parameters(), lr=0.1)", "make_optimizer()"),
            "no optimizer is given",
        ),
        (
            script(model="nets = [Net().cuda()]").replace("model.parameters", "nets[0].parameters"),
            "in a container",
        ),
    ],
)
def test_what_is_left_to_the_user(source: str, reason: str) -> None:
    assert reason in refusal(source)


def test_gradients_that_are_switched_off_are_pointed_out() -> None:
    source = script(step="model.requires_grad_(False)\n        model(x.cuda()).sum().backward()")
    assert told(source) == ["model.requires_grad_(False)"]


def test_old_checkpoints_of_data_parallel_can_be_loaded() -> None:
    source = script(
        model="""
        model = nn.DataParallel(Net()).cuda()
        if resume:
            state = torch.load("last.pt")
            model.load_state_dict(state["model"])
        """
    )
    assert model_lines(source) == [
        "- model = nn.DataParallel(Net()).cuda()",
        "+ model = Net().cuda()",
        '+     consume_prefix_in_state_dict_if_present(state["model"], "module.")',
        WRAP,
    ]


def test_a_count_of_all_cards_is_pointed_out() -> None:
    source = script(
        between="size = 8 * torch.cuda.device_count()\nif torch.cuda.device_count() > 1:\n    print()"
    )
    assert told(source) == ["torch.cuda.device_count()"]
    assert "torch.cuda.device_count()" in told(source, Kind.INFO)


def test_a_learning_rate_that_follows_a_figure_is_a_risk() -> None:
    source = script(between="plan = optim.lr_scheduler.ReduceLROnPlateau(optimizer)")
    assert told(source, Kind.RISK) == ["optim.lr_scheduler.ReduceLROnPlateau(optimizer)"]


def test_the_inside_of_a_data_parallel_that_is_gone() -> None:
    source = script(
        model="""
        model = nn.DataParallel(Net()).cuda()
        model.module.freeze()
        """,
        end="print(model.module.width)",
    )
    assert model_lines(source) == [
        "- model = nn.DataParallel(Net()).cuda()",
        "- model.module.freeze()",
        "+ model = Net().cuda()",
        "+ model.freeze()",
        WRAP,
    ]


def test_a_trained_model_that_is_given_back() -> None:
    source = """
    import torch
    from torch.utils.data import DataLoader
    from things import Net, dataset

    def fit():
        net = Net().cuda()
        optimizer = torch.optim.Adam(net.parameters())
        loader = DataLoader(dataset, 8)
        for x in loader:
            net(x.cuda()).sum().backward()
            optimizer.step()
        return 0.5, net

    loss, best = fit()
    print(best.width)
    """
    lines = changes(source).splitlines()
    assert f"+     net = DistributedDataParallel(net, {IDS})" in lines
    assert "+ print(best.module.width)" in lines


def test_a_model_that_the_user_did_not_name() -> None:
    source = script(
        between="critic = Net().cuda()\ncritic_optimizer = optim.Adam(critic.parameters())",
        step="(model(x.cuda()) + critic(x.cuda())).sum().backward()",
    )
    conversion = convert(source, Distributed(MAIN, "critic"))
    (todo,) = [finding for finding in conversion.findings if finding.kind is Kind.TODO]
    assert todo.message.en.startswith("`model` is trained but not named by `--model-name`")
    both = convert(source, Distributed(MAIN, "critic, model"))
    assert (both.new_text or "").count("= DistributedDataParallel(") == 2
    assert not [finding for finding in both.findings if finding.kind is Kind.TODO]


MODULE = """
class Part(nn.Module):
    def __init__(self):
        self.used = nn.Linear(9, 9)
        self.spare = nn.Linear(9, 9)

    def forward(self, x):
        return self.used(x)

class Whole(nn.Module):
    def __init__(self):
        self.part = Part()

    def forward(self, x):
        return self.part(x)
"""


def test_a_layer_that_is_never_used() -> None:
    source = script(device=MODULE, model="model = Whole().cuda()")
    waits = WRAP.replace(" else None)", " else None, find_unused_parameters=True)")
    assert model_lines(source) == [waits]
    assert model_lines(source.replace("self.used(x)", "self.used(self.spare(x))")) == [WRAP]
    assert model_lines(source.replace("self.used(x)", "[f(x) for f in self.children()]")) == [WRAP]


def test_a_variable_that_gets_another_model_after_the_training() -> None:
    source = script(end="model = Net()\nmodel.load_state_dict(torch.load('last.pt'))\nprint(model.width)")
    assert "+ model.module" not in changes(source)
    perhaps = script(end="if args.plain:\n    model = Net()\nprint(model.width)")
    assert '+ print(getattr(model, "module", model).width)' in model_lines(perhaps)


def test_one_variable_for_two_models_that_are_trained() -> None:
    source = script(end="model = Net().cuda()\noptimizer = optim.SGD(model.parameters(), lr=0.1)")
    assert "model holds one model after the other" in refusal(source)
