"""Images to train on: a folder with one sub-folder per class, or random ones."""

import os
import random

import torch
from torch.utils.data import Dataset

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")


class RandomImages(Dataset):
    """Noise with labels: the same image for the same index in every run."""

    def __init__(self, length, image_size, num_classes, seed=0):
        self.length, self.image_size, self.num_classes, self.seed = length, image_size, num_classes, seed

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + index)
        image = torch.randn(3, self.image_size, self.image_size, generator=generator)
        label = torch.randint(self.num_classes, (1,), generator=generator).item()
        return image, label


class ImageFolder(Dataset):
    """FOLDER/class/picture.jpg; a random crop and flip for training, the middle for validation."""

    def __init__(self, folder, image_size, train):
        self.image_size, self.train = image_size, train
        self.classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
        self.items = [
            (os.path.join(folder, name, file), label)
            for label, name in enumerate(self.classes)
            for file in sorted(os.listdir(os.path.join(folder, name)))
            if file.lower().endswith(SUFFIXES)
        ]
        if not self.items:
            raise SystemExit(f"no images in {folder}: expected {folder}/CLASS/PICTURE.jpg")

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        from PIL import Image

        path, label = self.items[index]
        with Image.open(path) as opened:
            image = self.crop(opened.convert("RGB"))
        pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
        pixels = pixels.reshape(self.image_size, self.image_size, 3).permute(2, 0, 1).float() / 255
        if self.train and random.random() < 0.5:
            pixels = pixels.flip(2)
        return (pixels - MEAN) / STD, label

    def crop(self, image):
        width, height = image.size
        share = random.uniform(0.5, 1.0) if self.train else 0.875
        side = max(1, int(min(width, height) * share))
        free_x, free_y = width - side, height - side
        left = random.randint(0, free_x) if self.train else free_x // 2
        top = random.randint(0, free_y) if self.train else free_y // 2
        box = (left, top, left + side, top + side)
        return image.resize((self.image_size, self.image_size), box=box)
