"""apex.contrib.combine_tensors: tensors that share one buffer."""

from torchferry.sim.shims.optim.combined import combine as combine_npu
from torchferry.sim.shims.optim.combined import is_combined as is_combined_tensor_valid
from torchferry.sim.shims.optim.combined import part_of as get_part_combined_tensor

__all__ = ["combine_npu", "get_part_combined_tensor", "is_combined_tensor_valid"]
