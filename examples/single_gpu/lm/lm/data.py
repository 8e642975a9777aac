"""Sentences of a toy grammar, cut into windows of characters."""

import random

import torch
from torch.utils.data import DataLoader, Dataset

SUBJECTS = ["the ferry", "the captain", "a gull", "the old lighthouse", "a fisherman"]
VERBS = ["sees", "follows", "waits for", "remembers", "crosses"]
OBJECTS = ["the sea", "the harbour", "a storm", "the morning tide", "the far shore"]


def make_text(sentences, seed=0):
    choice = random.Random(seed).choice
    return "".join(f"{choice(SUBJECTS)} {choice(VERBS)} {choice(OBJECTS)}. " for _ in range(sentences))


class Windows(Dataset):
    def __init__(self, tokens, context):
        self.tokens, self.context = tokens, context

    def __len__(self):
        return (len(self.tokens) - 1) // self.context

    def __getitem__(self, index):
        start = index * self.context
        piece = self.tokens[start : start + self.context + 1]
        return piece[:-1], piece[1:]


def get_dataloaders(sentences, context, batch_size):
    text = make_text(sentences)
    vocab = sorted(set(text))
    tokens = torch.tensor([vocab.index(character) for character in text])
    cut = len(tokens) * 9 // 10
    train_loader = DataLoader(
        Windows(tokens[:cut], context),
        batch_size=batch_size,
        shuffle=True,  # another order in each epoch
        pin_memory=False,
    )
    val_loader = DataLoader(Windows(tokens[cut:], context), batch_size=batch_size)
    return train_loader, val_loader, vocab
