"""The user's own rules: their files, and what the converter makes of them."""

from torchferry.convert.custom.engine import custom_rules
from torchferry.convert.custom.load import load_custom_rules
from torchferry.convert.custom.model import CustomRules

__all__ = ["CustomRules", "custom_rules", "load_custom_rules"]
