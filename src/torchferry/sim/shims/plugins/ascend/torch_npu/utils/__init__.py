"""torch_npu.utils: combined tensors."""

from torchferry.sim.shims.optim.combined import combine as npu_combine_tensors
from torchferry.sim.shims.optim.combined import is_combined as is_combined_tensor_valid
from torchferry.sim.shims.optim.combined import part_of as get_part_combined_tensor

__all__ = ["get_part_combined_tensor", "is_combined_tensor_valid", "npu_combine_tensors"]
