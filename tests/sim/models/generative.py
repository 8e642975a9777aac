"""Generative models that train against each other: VAE+GAN and FD-GAN."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from torchferry.text import Text

from .data import labels, pictures
from .entry import Batch, ModelEntry, Origin, Turn, adam
from .layers import ResNetFeatures, joined
from .vision_libraries import torchvision

_LATENT = 128
_MAP = 4  # pictures are eight times as wide
_JOINTS = 18
_POSE_NOISE = 64
_HEIGHT, _WIDTH = 64, 32


def _down(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 5, stride=2, padding=2), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


def _up(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.ConvTranspose2d(inputs, outputs, 5, stride=2, padding=2, output_padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class _VaeEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(_down(3, 64), _down(64, 128), _down(128, 256), nn.Flatten())
        self.dense = nn.Sequential(
            nn.Linear(256 * _MAP**2, 2048), nn.BatchNorm1d(2048), nn.ReLU(inplace=True)
        )
        self.mean = nn.Linear(2048, _LATENT)
        self.log_variance = nn.Linear(2048, _LATENT)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        value = self.dense(self.layers(images))
        return self.mean(value), self.log_variance(value)


class _VaeDecoder(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Linear(_LATENT, 256 * _MAP**2),
            nn.BatchNorm1d(256 * _MAP**2),
            nn.ReLU(inplace=True),
            nn.Unflatten(1, (256, _MAP, _MAP)),
            _up(256, 256),
            _up(256, 128),
            _up(128, 32),
            nn.Conv2d(32, 3, 5, padding=2),
            nn.Tanh(),
        )


class _FeatureDiscriminator(nn.Module):
    """Real or not, and the features in which reconstructions are compared."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 32, 5, padding=2), nn.ReLU(inplace=True))
        self.features = nn.Sequential(
            _down(32, 128), _down(128, 256), nn.Conv2d(256, 256, 5, stride=2, padding=2)
        )
        self.decision = nn.Sequential(
            nn.BatchNorm2d(256),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(256 * _MAP**2, 512),
            nn.BatchNorm1d(512),
            nn.ReLU(inplace=True),
            nn.Linear(512, 1),
        )

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        features = self.features(self.first(images))
        return self.decision(features), features


class VaeGan(nn.Module):
    """An autoencoder whose likeness is measured by a discriminator."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = _VaeEncoder()
        self.decoder = _VaeDecoder()
        self.discriminator = _FeatureDiscriminator()

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Means and log variances of the codes, and pictures decoded from them."""
        mean, log_variance = self.encoder(images)
        code = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        return mean, log_variance, self.decoder(code)

    def sample(self, like: Tensor) -> Tensor:
        """As many pictures as there are codes, decoded from noise."""
        sampled: Tensor = self.decoder(torch.randn_like(like))
        return sampled


def real_or_not(logits: Tensor, real: float) -> Tensor:
    """Binary cross entropy against one answer for all."""
    return functional.binary_cross_entropy_with_logits(logits, torch.full_like(logits, real))


def _photos() -> Batch:
    return {"pictures": pictures(4, 8 * _MAP).clamp(-1, 1)}


def _vae_discriminator_loss(model: VaeGan, batch: Batch) -> Tensor:
    with torch.no_grad():
        mean, _, decoded = model(batch["pictures"])
        sampled = model.sample(like=mean)
    real, fake, imagined = (
        model.discriminator(images)[0] for images in (batch["pictures"], decoded, sampled)
    )
    return real_or_not(real, 1.0) + real_or_not(fake, 0.0) + real_or_not(imagined, 0.0)


def _vae_decoder_loss(model: VaeGan, batch: Batch) -> Tensor:
    """Be like the picture in the discriminator's features, and pass for real."""
    mean, _, decoded = model(batch["pictures"])
    decision, features = model.discriminator(decoded)
    imagined, _ = model.discriminator(model.sample(like=mean))
    fooling = real_or_not(decision, 1.0) + real_or_not(imagined, 1.0)
    return 1e-2 * _unlikeness(model, features, batch) + fooling


def _vae_encoder_loss(model: VaeGan, batch: Batch) -> Tensor:
    """Stay near the prior, and keep what the discriminator's features need."""
    mean, log_variance, decoded = model(batch["pictures"])
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum(1).mean()
    return divergence + _unlikeness(model, model.discriminator(decoded)[1], batch)


def _unlikeness(model: VaeGan, features: Tensor, batch: Batch) -> Tensor:
    """How far features of decoded pictures are from those of the real ones."""
    wanted = model.discriminator(batch["pictures"])[1].detach()
    return functional.mse_loss(features, wanted, reduction="sum") / len(features)


class _PersonEncoder(nn.Module):
    """What a picture says of a person, whatever the pose."""

    def __init__(self) -> None:
        super().__init__()
        self.features = ResNetFeatures()

    def forward(self, images: Tensor) -> Tensor:
        return functional.adaptive_avg_pool2d(self.features(images)[-1], 1)


class _PairVerifier(nn.Module):
    """Are two features of one person: squared difference, normalization, two classes."""

    def __init__(self, features: int):
        super().__init__()
        self.normalization = nn.BatchNorm1d(features)
        self.classifier = nn.Linear(features, 2)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        return self.classifier(self.normalization((first - second).flatten(1) ** 2))


class _PoseGenerator(nn.Module):
    """A person in a given pose: a U-Net over the pose map with the person's features at its bottom."""

    def __init__(self, widths: tuple[int, ...] = (64, 128, 256, 512)):
        super().__init__()
        self.down = nn.ModuleList()
        inputs = _JOINTS
        for width in widths:
            self.down.append(
                nn.Sequential(
                    nn.LeakyReLU(0.2) if inputs != _JOINTS else nn.Identity(),
                    nn.Conv2d(inputs, width, 4, stride=2, padding=1),
                    nn.BatchNorm2d(width),
                )
            )
            inputs = width
        self.bottom = nn.Sequential(
            nn.ReLU(),
            nn.ConvTranspose2d(2048 + _POSE_NOISE, widths[-1], (_HEIGHT // 16, _WIDTH // 16)),
            nn.BatchNorm2d(widths[-1]),
            nn.Dropout(0.5),
        )
        self.up = nn.ModuleList()
        for width, following in zip(reversed(widths), (*reversed(widths[:-1]), 3), strict=True):
            layers = [nn.ReLU(), nn.ConvTranspose2d(2 * width, following, 4, stride=2, padding=1)]
            last: nn.Module = nn.Tanh() if following == 3 else nn.BatchNorm2d(following)
            self.up.append(nn.Sequential(*layers, last))

    def forward(self, pose: Tensor, person: Tensor, noise: Tensor) -> Tensor:
        skips, value = [], pose
        for down in self.down:
            value = down(value)
            skips.append(value)
        value = self.bottom(joined(person, noise))
        for up in self.up:
            value = up(joined(value, skips.pop()))
        return value


class _PatchDiscriminator(nn.Sequential):
    """Does a picture fit a pose: a decision for each patch."""

    def __init__(self) -> None:
        layers: list[nn.Module] = [
            nn.Conv2d(_JOINTS + 3, 64, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2, True),
        ]
        for inputs, outputs in ((64, 128), (128, 256)):
            layers += [
                nn.Conv2d(inputs, outputs, 4, stride=2, padding=1, bias=False),
                nn.BatchNorm2d(outputs),
                nn.LeakyReLU(0.2, True),
            ]
        super().__init__(*layers, nn.Conv2d(256, 1, 4, padding=2))


class _IdentityDiscriminator(nn.Module):
    """Do two pictures show one person: a Siamese network of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = torchvision.models.resnet18()
        self.trunk.fc = nn.Identity()
        self.verifier = _PairVerifier(512)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        return self.verifier(self.trunk(first), self.trunk(second))[:, 1]


class FdGan(nn.Module):
    """Distils features of a person that don't depend on the pose, by drawing the person in another pose."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = _PersonEncoder()
        self.verifier = _PairVerifier(2048)
        self.generator = _PoseGenerator()
        self.pose_judge = _PatchDiscriminator()
        self.identity_judge = _IdentityDiscriminator()

    def forward(self, images: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Features of the persons in pictures, and those persons drawn in the wanted pose."""
        person = self.encoder(images)
        return person, self.generator(batch["pose"], person, batch["noise"])


def _pairs() -> Batch:
    """Pairs of pictures, whether they show one person, and the first person in the wanted pose."""
    count = 2
    rows, columns = torch.arange(_HEIGHT).view(-1, 1), torch.arange(_WIDTH)
    x, y = (torch.rand(count, _JOINTS, 1, 1) * size for size in (_WIDTH, _HEIGHT))
    return {
        "first": pictures(count, _HEIGHT, _WIDTH).clamp(-1, 1),
        "second": pictures(count, _HEIGHT, _WIDTH).clamp(-1, 1),
        "wanted": pictures(count, _HEIGHT, _WIDTH).clamp(-1, 1),
        "same": labels(count, classes=2),
        "pose": torch.exp(-((rows - y) ** 2 + (columns - x) ** 2) / 18),
        "noise": torch.randn(count, _POSE_NOISE, 1, 1),
    }


def _pose_judge_loss(model: FdGan, batch: Batch) -> Tensor:
    with torch.no_grad():
        _, drawn = model(batch["first"], batch)
    real = model.pose_judge(joined(batch["pose"], batch["wanted"]))
    return 0.5 * (real_or_not(real, 0.9) + real_or_not(model.pose_judge(joined(batch["pose"], drawn)), 0.1))


def _identity_judge_loss(model: FdGan, batch: Batch) -> Tensor:
    with torch.no_grad():
        _, drawn = model(batch["first"], batch)
    real = model.identity_judge(batch["first"], batch["wanted"])
    return 0.5 * (real_or_not(real, 0.9) + real_or_not(model.identity_judge(batch["first"], drawn), 0.1))


def _drawing_loss(model: FdGan, batch: Batch) -> Tensor:
    """Tell persons apart, draw what is wanted, draw one person alike from both pictures, fool both judges."""
    (first, from_first), (second, from_second) = (model(batch[name], batch) for name in ("first", "second"))
    verification = functional.cross_entropy(model.verifier(first, second), batch["same"])
    reconstruction = functional.l1_loss(from_first, batch["wanted"])
    one_person = batch["same"].view(-1, 1, 1, 1)
    same_pose = ((from_first - from_second).abs() * one_person).mean()
    fooling = real_or_not(model.pose_judge(joined(batch["pose"], from_first)), 1.0) + real_or_not(
        model.identity_judge(batch["first"], from_first), 1.0
    )
    return 0.1 * verification + 100 * reconstruction + 10 * same_pose + fooling


ENTRIES = [
    ModelEntry(
        "VAE+GAN",
        Origin.OWN,
        "arXiv:1512.09300",
        build=VaeGan,
        batch=_photos,
        turns=(
            Turn(_vae_discriminator_loss, ("discriminator",)),
            Turn(_vae_decoder_loss, ("decoder",)),
            Turn(_vae_encoder_loss, ("encoder",)),
        ),
        optimizer=adam,
        note=Text("Pictures of 32² instead of 64².", "图像为 32²（原为 64²）。"),
    ),
    ModelEntry(
        "FD-GAN",
        Origin.OWN,
        "arXiv:1810.02936",
        build=FdGan,
        batch=_pairs,
        turns=(
            Turn(_pose_judge_loss, ("pose_judge",)),
            Turn(_identity_judge_loss, ("identity_judge",)),
            Turn(_drawing_loss, ("encoder", "verifier", "generator")),
        ),
        optimizer=adam,
        note=Text(
            "The one for re-identification; pictures of 64 x 32, so two sizes fewer in the generator; "
            "ResNet-18 judges identity.",
            "用于行人重识别的 FD-GAN；图像为 64 x 32，生成器少两级；身份判别器用 ResNet-18。",
        ),
    ),
]
