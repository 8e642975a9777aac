"""Binary cross entropy of probabilities: autocast refuses it, so it is computed outside, in float32."""

from __future__ import annotations

import textwrap

import pytest

from tests.conversion.amp.amping import amped, check, converted, left
from torchferry.finding import Kind


def test_the_loss_is_outside_and_the_model_inside() -> None:
    check(
        """
        import torch
        import torch.nn as nn

        criterion = nn.BCELoss().cuda()
        optimizer = torch.optim.Adam(netD.parameters())
        for real, label in data:
            output = netD(real)
            err = criterion(output, label)
            err.backward()
            optimizer.step()
        """,
        """
        import torch
        import torch.nn as nn

        criterion = nn.BCELoss().cuda()
        optimizer = torch.optim.Adam(netD.parameters())
        scaler = torch.cuda.amp.GradScaler()
        for real, label in data:
            with torch.cuda.amp.autocast():
                output = netD(real)
            err = criterion(output.float(), label.float())
            scaler.scale(err).backward()
            scaler.step(optimizer)
            scaler.update()
        """,
    )


def test_a_prediction_inside_of_the_loss_is_computed_ahead() -> None:
    check(
        """
        import torch
        import torch.nn as nn

        adversarial = nn.BCELoss()
        pixelwise = nn.L1Loss()
        optimizer = torch.optim.Adam(p)
        for imgs, valid in data:
            code = encoder(imgs)
            loss = 0.1 * adversarial(discriminator(code), valid) + pixelwise(decoder(code), imgs)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            real = adversarial(discriminator(imgs), 1 - valid)
            real.backward()
            optimizer.step()
        """,
        """
        import torch
        import torch.nn as nn

        adversarial = nn.BCELoss()
        pixelwise = nn.L1Loss()
        optimizer = torch.optim.Adam(p)
        scaler = torch.cuda.amp.GradScaler()
        for imgs, valid in data:
            with torch.cuda.amp.autocast():
                code = encoder(imgs)
                prediction = discriminator(code)
            cross_entropy = adversarial(prediction.float(), valid.float())
            with torch.cuda.amp.autocast():
                loss = 0.1 * cross_entropy + pixelwise(decoder(code), imgs)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            with torch.cuda.amp.autocast():
                probabilities = discriminator(imgs)
            real = adversarial(probabilities.float(), (1 - valid).float())
            scaler.scale(real).backward()
            scaler.step(optimizer)
            scaler.update()
        """,
    )


def test_a_function_of_the_module_leaves_autocast() -> None:
    check(
        """
        import torch
        from torch.nn import functional as F

        def loss_function(recon_x, x, mu, logvar):
            BCE = F.binary_cross_entropy(recon_x, x.view(-1, 784), reduction='sum')
            KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
            return BCE + KLD

        def train(model, optimizer):
            for data in loader:
                recon_batch, mu, logvar = model(data)
                loss = loss_function(recon_batch, data, mu, logvar)
                loss.backward()
                optimizer.step()

        @torch.no_grad()
        def evaluate(model):
            return F.binary_cross_entropy(model(x), y)
        """,
        """
        import torch
        from torch.nn import functional as F

        scaler = torch.cuda.amp.GradScaler()

        def loss_function(recon_x, x, mu, logvar):
            with torch.cuda.amp.autocast(enabled=False):
                BCE = F.binary_cross_entropy(recon_x.float(), x.view(-1, 784).float(), reduction='sum')
            KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
            return BCE + KLD

        def train(model, optimizer):
            for data in loader:
                with torch.cuda.amp.autocast():
                    recon_batch, mu, logvar = model(data)
                    loss = loss_function(recon_batch, data, mu, logvar)
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()

        @torch.no_grad()
        def evaluate(model):
            return F.binary_cross_entropy(model(x), y)
        """,
    )


def test_a_loss_that_a_function_or_a_class_is_given() -> None:
    text = amped(
        """
        import torch
        def train(model, loss_fn, optimizer):
            for x, y in data:
                loss = loss_fn(model(x), y)
                loss.backward()
                optimizer.step()

        def main():
            bce = torch.nn.BCELoss()
            train(model, bce, torch.optim.SGD(model.parameters(), 0.1))
        """
    )
    assert "        loss = loss_fn(prediction.float(), y.float())\n" in text
    text = amped(
        """
        import torch
        class Trainer:
            def __init__(self, criterion):
                self.criterion = criterion
                self.optimizer = torch.optim.SGD(p, 0.1)
            def fit(self, x, y):
                out = self.model(x)
                loss = self.criterion(out, y)
                loss.backward()
                self.optimizer.step()
        bce = torch.nn.BCELoss()
        Trainer(bce)
        """
    )
    assert "        loss = self.criterion(out.float(), y.float())\n" in text


def test_the_report_names_the_better_loss() -> None:
    source = """
        import torch
        def train(model, optimizer):
            out = model(x)
            loss = torch.nn.functional.binary_cross_entropy(out, y)
            loss.backward()
            optimizer.step()
        """
    changed = [item for item in converted(textwrap.dedent(source)).findings if item.kind is Kind.CHANGE]
    assert any("BCEWithLogitsLoss" in item.message.en for item in changed)


def test_a_loss_that_is_made_on_the_spot() -> None:
    text = amped(
        """
        import torch
        def train(model, criterion, optimizer):
            out = model(x)
            loss = criterion(out, y)
            loss.backward()
            optimizer.step()
        train(net, torch.nn.BCELoss().cuda(), torch.optim.SGD(p, 0.1))
        """
    )
    assert "    loss = criterion(out.float(), y.float())\n" in text


@pytest.mark.parametrize(
    "made",
    [
        "criterion = {'bce': torch.nn.BCELoss, 'mse': torch.nn.MSELoss}[name]()",
        "losses = [torch.nn.BCELoss(), torch.nn.MSELoss()]; criterion = losses[0]",
        "def choose():\n    return torch.nn.BCELoss()\ncriterion = choose()",
        "class Own(torch.nn.BCELoss): pass\ncriterion = Own()",
        "criterion = Weighted(torch.nn.BCELoss())",
    ],
)
def test_a_loss_that_gets_lost_is_left_to_the_user(made: str) -> None:
    source = f"""import torch
{made}
def train(model, optimizer):
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
"""
    ((kind, place, message),) = left(source)
    assert (kind, place) == ("todo", "torch.nn.BCELoss")
    assert "the calls of this loss are not clear" in message


@pytest.mark.parametrize(
    "use", ["if isinstance(criterion, torch.nn.BCELoss): pass", "def f(c: torch.nn.BCELoss): pass"]
)
def test_a_loss_that_is_only_spoken_of(use: str) -> None:
    source = f"""import torch
{use}
def train(model, optimizer):
    loss = model(x)
    loss.backward()
    optimizer.step()
"""
    assert "scaler.step(optimizer)" in amped(source)


def test_what_is_computed_ahead_comes_first() -> None:
    check(
        """
        import torch
        bce = torch.nn.BCELoss()
        l1 = torch.nn.L1Loss()
        optimizer = torch.optim.SGD(p, 0.1)
        for x, y in data:
            out = net(x)
            first = bce(out, y)
            loss = first + l1(out, y) + bce(net(x + 1), y)
            loss.backward()
            optimizer.step()
        """,
        """
        import torch
        bce = torch.nn.BCELoss()
        l1 = torch.nn.L1Loss()
        optimizer = torch.optim.SGD(p, 0.1)
        scaler = torch.cuda.amp.GradScaler()
        for x, y in data:
            with torch.cuda.amp.autocast():
                out = net(x)
            first = bce(out.float(), y.float())
            with torch.cuda.amp.autocast():
                prediction = net(x + 1)
            cross_entropy = bce(prediction.float(), y.float())
            with torch.cuda.amp.autocast():
                loss = first + l1(out, y) + cross_entropy
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        """,
    )


def test_a_function_computes_the_rest_under_autocast() -> None:
    """outside of it the half-precision input would meet the float32 weights of self.head"""
    text = amped(
        """
        import torch
        import torch.nn.functional as F
        class Model(torch.nn.Module):
            def loss(self, x, y):
                h = self.body(x)
                with torch.no_grad():
                    target = self.teacher(x)
                return F.binary_cross_entropy(torch.sigmoid(h), y) + F.mse_loss(self.head(h), target)
        def train(model, optimizer):
            loss = model.loss(x, y)
            loss.backward()
            optimizer.step()
        """
    )
    assert (
        "        prediction = torch.sigmoid(h)\n"
        "        with torch.cuda.amp.autocast(enabled=False):\n"
        "            cross_entropy = F.binary_cross_entropy(prediction.float(), y.float())\n"
        "        return cross_entropy + F.mse_loss(self.head(h), target)\n"
    ) in text


def test_an_evaluation_between_steps_stays_in_single_precision() -> None:
    text = amped(
        """
        import torch
        bce = torch.nn.BCELoss()
        def train(model, optimizer):
            for x, y in data:
                out = model(x)
                loss = bce(out, y)
                loss.backward()
                optimizer.step()
                with torch.no_grad():
                    log(bce(model(x), y).item())
        """
    )
    assert "        with torch.no_grad():\n            log(bce(model(x).float(), y.float()).item())\n" in text
    assert text.count("with torch.cuda.amp.autocast():") == 1
