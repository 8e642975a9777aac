"""Light statistics over a long run: loss, gradients, parameters, activations of modules at every n-th step.

The file is a record of statistics (Kept.STATISTICS). In the place of operators its calls have these:

| operator        | phase     | model, module          | outputs                                              |
|-----------------|-----------|------------------------|------------------------------------------------------|
| module          | forward   | of the module; `node` is its type | what it answered, output/output_0 ...     |
| output_gradient | backward  | of the module          | the gradient with respect to that, by the same name  |
| loss            | forward   |                        | what `backward` was called on, a scale taken out     |
| gradient        | backward  | whose parameter it is  | output/weight: before the optimizer's step, unscaled |
| gradient_norm   | backward  |                        | output/all: all gradients of the step as one tensor  |
| group_gradient_norm | backward | optimizer, group0 ... | output/all: those of a group, where there are several |
| parameter       | optimizer | whose parameter it is  | output/weight: after the step                        |
| update          | optimizer | whose parameter it is  | output/weight: by how much the step changed it       |
| buffer          | optimizer | whose buffer it is     | output/running_mean: after the step                  |
| learning_rate   | optimizer | optimizer, group0 ...  | output/value                                         |
| scale           | optimizer |                        | output/value: of the GradScaler                      |
| step            | optimizer |                        | none; the arguments `seconds` (what the step took), `time` (when it ended), `skipped` |

Update ratios are the root mean square of `update` over that of `parameter`. Updates of a parameter with more than a
million elements are those of a million of them, evenly spread: nothing larger is copied.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchferry.accuracy.watch.watcher import Watcher


def watching(path: str | os.PathLike[str], every: int = 100) -> AbstractContextManager[Watcher]:
    """A context in which the training is watched at its first and every n-th step, into this file."""
    from torchferry.accuracy.watch.watcher import watched_block

    return watched_block(Path(path), every)
