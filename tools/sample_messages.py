"""Prints some of the texts that users see, drawn at random, for people who review their language.

    python -m tools.sample_messages --lang zh --count 100 --seed 1
"""

from __future__ import annotations

import argparse
import random

from tools.texts import shown_texts, utf8_output
from torchferry.text import Language


def sample(language: Language, count: int, seed: int, words: int = 1) -> list[str]:
    """So many texts with their places; the same for the same seed."""
    found = [
        f"{place}  {text.in_language(language)}"
        for place, text in shown_texts()
        if len(text.en.split()) >= words and text.in_language(language)
    ]
    return random.Random(seed).sample(found, min(count, len(found)))


def main() -> None:
    """Parse, draw, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the texts (default: en)")
    parser.add_argument("--count", type=int, default=100, help="number of texts (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument(
        "--words", type=int, default=4, help="fewest words of the English text, to leave labels out (default: 4)"
    )
    args = parser.parse_args()
    utf8_output()
    print("\n".join(sample(args.lang, args.count, args.seed, args.words)))


if __name__ == "__main__":
    main()
