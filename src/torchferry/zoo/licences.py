"""Recognises licences by words that only they have."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FILE = re.compile(r"(licen[cs]e|copying)(\.(txt|md|rst))?", re.IGNORECASE)
# The first that fits counts: the longer names first.
_WORDS = {
    "AGPL-3.0": r"GNU AFFERO GENERAL PUBLIC LICENSE",
    "LGPL": r"GNU LESSER GENERAL PUBLIC LICENSE",
    "GPL": r"GNU GENERAL PUBLIC LICENSE",
    "Apache-2.0": r"Apache License,?\s+Version 2\.0",
    "MPL-2.0": r"Mozilla Public License",
    "CC-BY-NC": r"Attribution-NonCommercial|Creative Commons.*NonCommercial",
    "MIT": r"Permission is hereby granted, free of charge, to any person obtaining a copy",
    "BSD-3-Clause": r"Neither the name of",
    "BSD-2-Clause": r"Redistribution and use in source and binary forms",
}


def licence_files(names: Iterable[str]) -> list[str]:
    """The licence files at the top of a folder."""
    return [name for name in names if _FILE.fullmatch(name)]


def licence_name(text: str) -> str:
    """As SPDX names it; "" for one that is not recognised."""
    plain = " ".join(text.split())
    return next(
        (name for name, words in _WORDS.items() if re.search(words, plain, re.IGNORECASE | re.DOTALL)), ""
    )
