"""Binary cross entropy of probabilities: autocast refuses it, so it is computed outside, in float32."""

from __future__ import annotations

import textwrap

from tests.convert.amp.amping import amped, check, converted
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
