"""Train a small transformer language model, character by character, on one GPU."""

import argparse
import logging

import torch
from lm.data import get_dataloaders
from lm.engine import Trainer
from lm.model import GPT, GPTConfig

logger = logging.getLogger(__name__)


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--context", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--sentences", type=int, default=600)
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--checkpoint", default="lm.pt")
    return parser.parse_args()


def main():
    args = get_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(1337)
    torch.cuda.set_device(args.gpu)

    train_loader, val_loader, vocab = get_dataloaders(args.sentences, args.context, args.batch_size)
    config = GPTConfig(vocab_size=len(vocab), context=args.context)
    model = GPT(config)
    logger.info("parameters: %d", model.num_parameters())

    trainer = Trainer(model, train_loader, val_loader, args)
    trainer.fit()

    prompt = torch.tensor([[vocab.index("t")]], device="cuda")
    sample = trainer.model.generate(prompt, 40)[0].tolist()
    print("sample:", "".join(vocab[token] for token in sample))


if __name__ == "__main__":
    main()
