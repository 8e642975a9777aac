"""The layer in a PyTorch that lacks what later releases have; such names are taken away before it is imported."""

from __future__ import annotations

import subprocess
import sys


def test_it_is_imported_where_the_scaler_for_any_device_is_missing() -> None:
    """torch.amp.GradScaler came with 2.3; only the reference's own scaler is made of it."""
    code = "import torch; del torch.amp.GradScaler; import torchferry.runtime.layer"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
