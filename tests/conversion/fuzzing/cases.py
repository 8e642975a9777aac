"""One input of the fuzzer, all of it from its seed: the bytes of a module, and what it is converted to, and how."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from tests.conversion.fuzzing import corpus, grammar, training
from tests.conversion.rewriting import VENDORS, target
from torchferry.conversion.file import WELL_KNOWN, FileJob
from torchferry.conversion.planning import OPT_INS
from torchferry.conversion.program.neighbours import Neighbours
from torchferry.conversion.project import Plan
from torchferry.conversion.rule import RuleSet
from torchferry.conversion.settings import AmpForm, Distributed, PassSettings

PATH = "module.py"
TARGETS = (*VENDORS, "portable", "ascend+cuda", "cambricon+cuda")
OPTIONS = (*(name for name in OPT_INS if name != "fixed_shape"), "amp", "apex", "distributed")
_ENCODINGS = ("latin-1", "gbk", "utf-8", "cp1252", "shift_jis", "koi8-r")
_COMMENTS = {
    "latin-1": "é",
    "gbk": "模型",
    "utf-8": "模型 é",
    "cp1252": "é€",
    "shift_jis": "モデル",
    "koi8-r": "модель",
}
_WORD = re.compile(r"\b[a-z_]{1,12}\b")


@dataclass(frozen=True)
class Case:
    """What to convert."""

    seed: int
    data: bytes
    to: str
    options: tuple[str, ...]

    def job(self) -> FileJob:
        """A job as the command line would make it for a single file."""
        return replace(_job(self.to, self.options), neighbours=Neighbours(None, WELL_KNOWN))


@cache
def _job(to: str, options: tuple[str, ...]) -> FileJob:
    """What many files of a run would share."""
    names = frozenset("amp" if name == "apex" else name for name in options)
    amp = AmpForm.APEX if "apex" in options else AmpForm.TORCH if "amp" in options else None
    settings = PassSettings(Distributed(PATH) if "distributed" in options else None, amp)
    return FileJob(target(to), RuleSet(Plan(target(to), options=names).rules()), settings=settings)


def make_case(seed: int) -> Case:
    """The case of a seed."""
    random = Random(seed)
    while True:
        text = _text(random)
        data = _laid_out(text, random)
        if _compiles(data):
            break
    # Few sets of options, so that what is worked out for a set can be used again.
    options = Random(random.randrange(40)).sample(OPTIONS, 4) if random.random() < 0.6 else []
    return Case(seed, data, random.choice(TARGETS), tuple(sorted(options)))


def _text(random: Random) -> str:
    kind = random.random()
    if kind < 0.2:
        return training.script(random)
    if kind < 0.45:
        more = grammar.statement(random, "") + "\n" if random.random() < 0.5 else ""
        return _sprinkled(corpus.stretch(random), random) + more
    if kind < 0.6:
        return _sprinkled(corpus.stretch(random), random) + grammar.program(random)
    text = grammar.program(random)
    return text + corpus.stretch(random) if kind < 0.7 else text


def _sprinkled(text: str, random: Random) -> str:
    """Real code with idioms of CUDA in the place of some of its names."""
    if random.random() < 0.15:
        return text
    places = list(_WORD.finditer(text))
    for match in sorted(
        random.sample(places, min(len(places), random.randrange(2, 6))), key=lambda m: -m.start()
    ):
        new = (
            grammar.expression(random, 1)
            if random.random() < 0.8
            else random.choice(("cuda", "device", "torch"))
        )
        changed = text[: match.start()] + new + text[match.end() :]
        if _compiles(changed.encode("utf-8", "surrogatepass")):
            text = changed
    return text


def _laid_out(text: str, random: Random) -> bytes:
    """The bytes of a text in one of the many ways in which files are written."""
    if random.random() < 0.05:
        text = "\f" + text
    if random.random() < 0.1:
        text = text.rstrip("\n")
    head = ""
    encoding = "utf-8"
    bom = b""
    if random.random() < 0.15:
        encoding = random.choice(_ENCODINGS)
        head = f"# -*- coding: {encoding} -*-\n# {_COMMENTS[encoding]}\n"
    elif random.random() < 0.1:
        bom = b"\xef\xbb\xbf"
    newline = random.choice(("\n", "\n", "\n", "\r\n", "\r", "mixed"))
    text = head + text
    if newline == "mixed":
        text = "".join(line + random.choice(("\n", "\r\n")) for line in text.split("\n"))
    else:
        text = text.replace("\n", newline)
    try:
        return bom + text.encode(encoding)
    except UnicodeEncodeError:
        return text.replace(encoding, "utf-8", 1).encode("utf-8")


def _compiles(data: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, PATH, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
