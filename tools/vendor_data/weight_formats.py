"""The storage formats in which devices' kernels take weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class WeightFormats(NamedTuple):
    """The function that casts, and the number of the format for each class of torch.nn."""

    cast: str
    modules: Mapping[str, str]
    source: str


WEIGHT_FORMATS = {
    "ascend": WeightFormats(
        "torch_npu.npu_format_cast",
        {"Conv2d": "4", "Linear": "29"},  # FRACTAL_Z, FRACTAL_NZ
        "Ascend PyTorch porting guide, framework bottlenecks; numbers of the formats: aclFormat of CANN",
    )
}
