"""The words by which a file is known that the rewrite may touch; apart, because every run asks for them."""

# A file that the rewrite touches holds one of these words.
TRIGGERS = (
    "cuda",
    "DataLoader",
    "DataParallel",
    "backward(",
    "state_dict",
    "torch.save",
    "SummaryWriter",
    "__main__",
    "tqdm",
    "wandb",
    "mkdir",
    "makedirs",
    "shutil",
    "savefig",
    "save_image",
)
