"""The names of dtypes in CANN's documents and sources."""

from __future__ import annotations

import re

# In documents -> in CANN's messages, without DT_.
_OTHER_NAMES = {
    "FLOAT32": "FLOAT",
    "FLOAT64": "DOUBLE",
    "BF16": "BFLOAT16",
    "FP16": "FLOAT16",
    "FP32": "FLOAT",
}
KNOWN = frozenset(
    [
        *("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "BOOL", "COMPLEX32", "COMPLEX64", "COMPLEX128"),
        *("INT4", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"),
        *("HIFLOAT8", "FLOAT8_E5M2", "FLOAT8_E4M3FN", "FLOAT8_E8M0", "FLOAT4_E1M2", "FLOAT4_E2M1"),
    ]
)
_WORD = re.compile(r"(?<![A-Za-z0-9_])(?:DT_)?([A-Z]+[A-Z0-9_]*)(?![A-Za-z0-9_])")
_BETWEEN = re.compile(r"[、,，;；。.\s()（）]+|或者?|和")


def known_name(word: str) -> str | None:
    """The name in CANN's messages; None for what is no dtype."""
    name = _OTHER_NAMES.get(word, word)
    return name if name in KNOWN else None


def listed(text: str) -> frozenset[str] | None:
    """The dtypes of a text that is a list of them, and of nothing else; None for any other text."""
    words = [word for word in _BETWEEN.split(text) if word]
    names = [known_name(word) for word in words]
    return frozenset(name for name in names if name) if words and all(names) else None


def mentioned(text: str) -> frozenset[str]:
    """All dtypes that stand somewhere in a text."""
    return frozenset(name for word in _WORD.findall(text) if (name := known_name(word)))
