"""torch_npu.contrib: modules and functions that the adapter offers in the place of slow patterns."""

from . import function, module
from .function import *  # noqa: F403  the adapter re-exports both
from .module import *  # noqa: F403

__all__ = ["function", "module", *function.__all__, *module.__all__]
