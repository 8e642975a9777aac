"""Process groups of the simulated device."""

from torchferry.vendors.model import Vendor


def register(vendor: Vendor) -> None:
    """Coming."""
