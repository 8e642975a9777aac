"""Why a training step is left to the user."""

from __future__ import annotations

import ast

from torchferry.text import Text


class UnclearError(Exception):
    """A training step that the pass does not understand well enough; then nothing of the module is changed."""

    def __init__(self, node: ast.AST, reason: Text, is_certain: bool = False) -> None:
        super().__init__(reason.en)
        self.node = node
        self.reason = reason
        self.is_certain = is_certain  # it trains, whatever else the function shows
