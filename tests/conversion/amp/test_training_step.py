"""Autocast around forward and loss, GradScaler around backward and step."""

from __future__ import annotations

import pytest

from tests.conversion.amp.amping import amped, check, left
from tests.conversion.rewriting import run
from torchferry.finding import Kind


def test_a_function_that_is_given_its_optimizer() -> None:
    check(
        """
        import torch
        from torch.nn import functional as F


        def train(model, loader, optimizer, device):
            for data, target in loader:
                data, target = data.to(device), target.to(device)
                optimizer.zero_grad()
                output = model(data)
                loss = F.cross_entropy(output, target)
                loss.backward()
                optimizer.step()
                print(loss.item())
        """,
        """
        import torch
        from torch.nn import functional as F

        scaler = torch.cuda.amp.GradScaler()


        def train(model, loader, optimizer, device):
            for data, target in loader:
                data, target = data.to(device), target.to(device)
                optimizer.zero_grad()
                with torch.cuda.amp.autocast():
                    output = model(data)
                    loss = F.cross_entropy(output, target)
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
                print(loss.item())
        """,
    )


def test_everything_in_one_function() -> None:
    check(
        """
        import torch as th

        def main():
            model = Net().cuda()
            if adam:
                optimizer = th.optim.Adam(model.parameters())
            else:
                optimizer = th.optim.SGD(model.parameters(), lr=0.1)
            for epoch in range(3):
                for x, y in loader:
                    loss = criterion(model(x.cuda()), y.cuda())
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
        """,
        """
        import torch as th

        def main():
            model = Net().cuda()
            if adam:
                optimizer = th.optim.Adam(model.parameters())
            else:
                optimizer = th.optim.SGD(model.parameters(), lr=0.1)
            scaler = th.cuda.amp.GradScaler()
            for epoch in range(3):
                for x, y in loader:
                    with th.cuda.amp.autocast():
                        loss = criterion(model(x.cuda()), y.cuda())
                    optimizer.zero_grad()
                    scaler.scale(loss).backward()
                    scaler.step(optimizer)
                    scaler.update()
        """,
    )


def test_a_trainer_class() -> None:
    check(
        """
        import torch

        class Trainer:
            def __init__(self, model):
                self.model = model
                self.optimizer = torch.optim.Adam(self.model.parameters())
                self.scaler = StandardScaler()

            def step(self, batch):
                loss = self.compute_loss(batch)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

            def compute_loss(self, batch):
                return self.model(batch).mean()
        """,
        """
        import torch

        class Trainer:
            def __init__(self, model):
                self.model = model
                self.optimizer = torch.optim.Adam(self.model.parameters())
                self.grad_scaler = torch.cuda.amp.GradScaler()
                self.scaler = StandardScaler()

            def step(self, batch):
                with torch.cuda.amp.autocast():
                    loss = self.compute_loss(batch)
                self.optimizer.zero_grad()
                self.grad_scaler.scale(loss).backward()
                self.grad_scaler.step(self.optimizer)
                self.grad_scaler.update()

            def compute_loss(self, batch):
                return self.model(batch).mean()
        """,
    )


def test_a_phase_that_trains_and_one_that_does_not() -> None:
    check(
        """
        import torch
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

        def train_model(phases):
            for phase in phases:
                for inputs, labels in dataloaders[phase]:
                    with torch.set_grad_enabled(phase == 'train'):
                        outputs = model(inputs)
                        _, preds = torch.max(outputs, 1)
                        loss = criterion(outputs, labels)

                        # backward + optimize only if in training phase
                        if phase == 'train':
                            loss.backward()
                            optimizer.step()
        """,
        """
        import torch
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        scaler = torch.cuda.amp.GradScaler()

        def train_model(phases):
            for phase in phases:
                for inputs, labels in dataloaders[phase]:
                    with torch.set_grad_enabled(phase == 'train'):
                        with torch.cuda.amp.autocast():
                            outputs = model(inputs)
                            _, preds = torch.max(outputs, 1)
                            loss = criterion(outputs, labels)

                        # backward + optimize only if in training phase
                        if phase == 'train':
                            scaler.scale(loss).backward()
                            scaler.step(optimizer)
                            scaler.update()
        """,
    )


def test_a_loss_without_a_name_gets_one() -> None:
    check(
        """
        import torch
        opt = torch.optim.SGD(net.parameters(), 0.1)
        for x, y in data:
            opt.zero_grad()
            criterion(net(x), y).backward()
            opt.step()
        """,
        """
        import torch
        opt = torch.optim.SGD(net.parameters(), 0.1)
        scaler = torch.cuda.amp.GradScaler()
        for x, y in data:
            opt.zero_grad()
            with torch.cuda.amp.autocast():
                loss = criterion(net(x), y)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
        """,
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("loss.backward(retain_graph=True)", "scaler.scale(loss).backward(retain_graph=True)"),
        ("(loss + loss).backward()", "scaler.scale(loss + loss).backward()"),
        ("loss.mean().backward()", "scaler.scale(loss.mean()).backward()"),
        ("losses['all'].backward()", "scaler.scale(losses['all']).backward()"),
        ("loss.backward(torch.ones_like(loss))", "scaler.scale(loss).backward(torch.ones_like(loss))"),
    ],
)
def test_forms_of_backward(before: str, after: str) -> None:
    source = f"""
        import torch
        def train(model, optimizer):
            losses = {{}}
            for x in data:
                loss = losses['all'] = model(x)
                {before}
                optimizer.step()
        """
    assert f"\n        {after}\n" in amped(source)


def test_statements_on_one_line() -> None:
    text = amped(
        """
        import torch
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for x in data:
            loss = model(x)
            optimizer.zero_grad(); loss.backward(); optimizer.step()
        """
    )
    assert (
        "    optimizer.zero_grad(); scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()\n"
        in text
    )


def test_backward_in_methods_of_its_own() -> None:
    check(
        """
        import torch

        class Model(BaseModel):
            def __init__(self):
                if self.is_train:
                    self.optimizer_G = torch.optim.Adam(self.netG.parameters())
                    self.optimizer_D = torch.optim.Adam(self.netD.parameters())

            def forward(self):
                self.fake = self.netG(self.real)

            def backward_D(self):
                self.loss_D = self.criterion(self.netD(self.fake.detach()), False)
                self.loss_D.backward()

            def backward_G(self):
                self.loss_G = self.criterion(self.netD(self.fake), True)
                self.loss_G.backward()

            def optimize_parameters(self):
                self.forward()
                self.optimizer_D.zero_grad()
                self.backward_D()
                self.optimizer_D.step()
                self.optimizer_G.zero_grad()
                self.backward_G()
                self.optimizer_G.step()
        """,
        """
        import torch

        class Model(BaseModel):
            def __init__(self):
                if self.is_train:
                    self.optimizer_G = torch.optim.Adam(self.netG.parameters())
                    self.optimizer_D = torch.optim.Adam(self.netD.parameters())
                self.scaler = torch.cuda.amp.GradScaler()

            def forward(self):
                self.fake = self.netG(self.real)

            def backward_D(self):
                with torch.cuda.amp.autocast():
                    self.loss_D = self.criterion(self.netD(self.fake.detach()), False)
                self.scaler.scale(self.loss_D).backward()

            def backward_G(self):
                with torch.cuda.amp.autocast():
                    self.loss_G = self.criterion(self.netD(self.fake), True)
                self.scaler.scale(self.loss_G).backward()

            def optimize_parameters(self):
                with torch.cuda.amp.autocast():
                    self.forward()
                self.optimizer_D.zero_grad()
                self.backward_D()
                self.scaler.step(self.optimizer_D)
                self.optimizer_G.zero_grad()
                self.backward_G()
                self.scaler.step(self.optimizer_G)
                self.scaler.update()
        """,
    )


def test_making_a_model_is_not_forward() -> None:
    text = amped(
        """
        import torch

        def run():
            model = build_model(make_feedforward_args())
            optimizer = torch.optim.Adam(model.parameters())
            loss = model(batch).mean()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                loss = model(other)
        """
    )
    assert text.count("autocast") == 1
    assert "    with torch.cuda.amp.autocast():\n        loss = model(batch).mean()\n    scaler" in text


def test_an_import_of_torch_is_added_where_there_is_none() -> None:
    text = amped(
        """
        from __future__ import annotations
        from torch import optim
        optimizer = optim.SGD(model.parameters(), 0.1)
        for x in data:
            loss = model(x)
            loss.backward()
            optimizer.step()
        """
    )
    assert "from __future__ import annotations\nimport torch\nfrom torch import optim\n" in text


def test_a_line_that_is_to_be_left_leaves_the_whole_step() -> None:
    source = """
        import torch
        def train(model, optimizer):
            loss = model(x)
            loss.backward()  # ferry: ignore[TF720]
            optimizer.step()
        """
    assert "scaler" not in amped(source)


def test_a_forward_pass_that_is_a_method_of_another_object() -> None:
    source = """
        import torch
        class Policy(torch.nn.Module):
            def evaluate(self, states): return self.actor(states)
        class PPO:
            def __init__(self):
                self.{name} = {made}
                self.optimizer = torch.optim.Adam(parameters)
                self.mse_loss = torch.nn.MSELoss()
            def update(self, states, rewards):
                values = self.{name}.evaluate(states)
                loss = self.mse_loss(values, rewards)
                loss.backward()
                self.optimizer.step()
        """
    covered = amped(source.format(name="policy", made="Policy().to(device)"))
    assert "with torch.cuda.amp.autocast():\n            values = self.policy.evaluate(states)\n" in covered
    (found,) = left(source.format(name="thing", made="make()"))
    assert found[:2] == ("todo", "self.thing.evaluate(states)")
    assert "not clear which call is the forward pass" in found[2]


def test_code_of_the_pass_is_no_place_of_the_users_program() -> None:
    source = """
        import torch
        def train(model, optimizer):
            for x in data:
                loss = model(x.cuda())
                loss.backward()
                optimizer.step()
        """
    found = run(source, "ascend", "amp").findings
    changed = [(item.rule, item.before) for item in found if item.kind is Kind.CHANGE and item.before]
    assert ("TF103", "x.cuda()") in changed
    assert [rule for rule, _ in changed if rule == "TF102"] == []
