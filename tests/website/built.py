"""Marks of tests that need the built site; its fixture `site` is in conftest.py."""

from __future__ import annotations

import importlib.util

import pytest

NEEDS_MKDOCS = [
    pytest.mark.long,
    pytest.mark.skipif(
        importlib.util.find_spec("material") is None,
        reason="mkdocs-material is not installed; `make docs` installs it",
    ),
]
