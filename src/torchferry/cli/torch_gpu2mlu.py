"""Drop-in for Cambricon's torch_gpu2mlu."""
