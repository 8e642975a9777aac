"""Whether a program sets gradients to None, which optimizers that join all gradients into one tensor don't survive."""

from __future__ import annotations

import re

from torchferry.convert.site import FileContext

_DROPS = re.compile(
    rb"set_to_none\s*=\s*True"
    rb"|\.grad\s*=\s*None\b"
    # model.zero_grad(), which sets them to None since torch 2.0; that of an optimizer is its own
    rb"|(?i:\b(?!\w*(?:opt|solver))[a-z]\w+)\.zero_grad\(\s*\)"
)


def drops_gradients(context: FileContext) -> bool:
    """Whether this module, or any of the project, does so."""
    return _DROPS.search(context.module.data) is not None or context.neighbours.any_match(_DROPS)
