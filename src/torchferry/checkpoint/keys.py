"""The names of weights: prefixes that wrappers leave, how two sets of names fit, and what was meant where they don't."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

# DataParallel and DistributedDataParallel, torch.compile, FSDP, activation checkpointing.
WRAPPERS = ("module.", "_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")
_WRAPPED = re.compile(r"(?<![^.])(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\.")
# A counter of training that inference does not read; checkpoints of old releases have none.
HARMLESS = "num_batches_tracked"
SHOWN = 10

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Renaming:
    """What was taken off the names so that they fit."""

    names: Mapping[str, str]  # in the file -> in the model
    stripped: str = ""  # what the names began with
    unwrapped: int = 0  # names that had a wrapper within

    def of_module(self, name: str) -> str:
        """The same for the name of a module."""
        return _WRAPPED.sub("", f"{name}.".removeprefix(self.stripped)).removesuffix(".")


@dataclass(frozen=True)
class Fit:
    """How a file's weights fit a model's."""

    missing: tuple[str, ...]  # the model has them, the file has not
    unexpected: tuple[str, ...]  # the other way round
    misshapen: tuple[tuple[str, Shape, Shape], ...]  # name, in the file, in the model

    @property
    def is_whole(self) -> bool:
        return not (self.missing or self.unexpected or self.misshapen)


def wrappers_of(names: Collection[str]) -> tuple[str, ...]:
    """The prefixes of wrappers that every name begins with, outermost first."""
    found: list[str] = []
    rest = list(names)
    while rest:
        prefix = next((each for each in WRAPPERS if all(name.startswith(each) for name in rest)), None)
        if prefix is None:
            break
        found.append(prefix)
        rest = [name.removeprefix(prefix) for name in rest]
    return tuple(found)


def renamed_to_fit(names: Collection[str], wanted: Collection[str]) -> Renaming:
    """The names without what wrappers and frameworks put before them, as far as that makes more of them fit."""

    def score(renaming: Renaming) -> tuple[int, int]:
        return len(set(renaming.names.values()) & set(wanted)), -renaming.unwrapped

    as_it_is = Renaming({name: name for name in names})
    best = max((_without(names, prefix) for prefix in _candidates(names)), key=score)
    return best if score(best)[0] > score(as_it_is)[0] else as_it_is


def _candidates(names: Collection[str]) -> Iterable[str]:
    """What all names begin with, up to each dot, and nothing (for wrappers within names alone)."""
    common = _common_start(names)
    yield ""
    for end in range(1, len(common) + 1):
        if common[end - 1] == ".":
            yield common[:end]


def _common_start(names: Collection[str]) -> str:
    first, last = min(names, default=""), max(names, default="")
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return "".join(letter for letter, _ in same)


def _without(names: Collection[str], prefix: str) -> Renaming:
    shorter = {name: name.removeprefix(prefix) for name in names}
    bare = {name: _WRAPPED.sub("", short) for name, short in shorter.items()}
    return Renaming(bare, prefix, sum(bare[name] != shorter[name] for name in bare))


def fit(given: Mapping[str, Shape], wanted: Mapping[str, Shape]) -> Fit:
    """Hold names and shapes of a file against those of a model."""
    missing = tuple(name for name in wanted if name not in given and not name.endswith(HARMLESS))
    unexpected = tuple(name for name in given if name not in wanted)
    misshapen = tuple(
        (name, given[name], wanted[name]) for name in given if name in wanted and given[name] != wanted[name]
    )
    return Fit(missing, unexpected, misshapen)


def closest(name: str, others: Collection[str]) -> str:
    """What may have been meant; "" if nothing is near."""
    last = name.rsplit(".", 2)[-2:]
    alike = [other for other in others if other.rsplit(".", 2)[-2:] == last] or list(others)
    near = difflib.get_close_matches(name, alike[:500], 1, 0.5)
    return near[0] if near else ""


def differences(found: Fit) -> list[str]:
    """One line for each name that does not fit, the first few of each kind, with what was probably meant."""
    lines = []
    for title, names, others in (
        ("missing in the file", found.missing, found.unexpected),
        ("not in the model", found.unexpected, found.missing),
    ):
        lines += [f"{title}: {name}{_meant(closest(name, others))}" for name in names[:SHOWN]]
        lines += [f"{title}: and {len(names) - SHOWN} more"] if len(names) > SHOWN else []
    shown = found.misshapen[:SHOWN]
    lines += [
        f"another shape: {name} is {_x(given)} in the file, {_x(wanted)} in the model"
        for name, given, wanted in shown
    ]
    rest = len(found.misshapen) - len(shown)
    return lines + ([f"another shape: and {rest} more"] if rest else [])


def _meant(near: str) -> str:
    return f" (closest: {near})" if near else ""


def _x(shape: Shape) -> str:
    return "x".join(map(str, shape)) or "a scalar"
