"""What PyTorch calls at the end of `import torch`: activates the simulator in programs that `ferry run` started."""

from __future__ import annotations

import os

from torchferry.sim.environment import VARIABLE, SimSettings, settings_in


def autoload() -> None:
    """Do nothing, at once, unless the environment asks for the simulator."""
    if VARIABLE not in os.environ:
        return
    settings = settings_in(os.environ)
    if settings is not None:
        _activate(settings)


def _activate(settings: SimSettings) -> None:
    from pathlib import Path

    from torchferry.sim.activation import activate_settings
    from torchferry.sim.summary_part import report_at_exit

    activate_settings(settings)
    if settings.summary_folder:
        report_at_exit(Path(settings.summary_folder))
