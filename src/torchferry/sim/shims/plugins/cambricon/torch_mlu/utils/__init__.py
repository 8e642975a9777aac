"""torch_mlu.utils."""
