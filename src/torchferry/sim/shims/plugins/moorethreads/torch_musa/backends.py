"""torch.backends.musa: the adapter's switch for TensorFloat32."""

from __future__ import annotations

from types import SimpleNamespace

from torchferry.sim.shims.modules import add_backend

musa = add_backend("musa", matmul=SimpleNamespace(allow_tf32=False))
