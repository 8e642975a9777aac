"""The emulated libraries, which are compiled against the headers that the plugin carries."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchferry.emulate import build, plugins
from torchferry.vendors.registry import get_vendor


@pytest.fixture(scope="session")
def libraries() -> Path:
    """The folder that holds them."""
    vendor = get_vendor("ascend")
    plugin = plugins.found(vendor)
    if plugin is None:
        pytest.skip("the vendor's plugin is not here; `ferry emulate setup --to ascend` fetches it")
    return build.library_folder(vendor, plugin.folder)
