"""torch_npu.utils: combined tensors."""

from torchferry.sim.shims.optim.combining import combine as npu_combine_tensors
from torchferry.sim.shims.optim.combining import is_combined as is_combined_tensor_valid
from torchferry.sim.shims.optim.combining import part_of as get_part_combined_tensor

__all__ = ["get_part_combined_tensor", "is_combined_tensor_valid", "npu_combine_tensors"]
