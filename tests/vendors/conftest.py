"""What the vendor tests share: a user's vendor folder."""

from __future__ import annotations

from pathlib import Path

import pytest

MINIMAL = """\
name = "acme"
company = "Acme Ltd"
device_type = "acme"
plugin = "torch_acme"
torch_module = "torch.acme"
dist_backend = "accl"
tensor_method = "acme"
is_attribute = "is_acme"
"""


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    """A vendor folder with nothing but the required keys."""
    folder = tmp_path / "mine" / "acme"
    folder.mkdir(parents=True)
    (folder / "vendor.toml").write_text(MINIMAL)
    return folder
