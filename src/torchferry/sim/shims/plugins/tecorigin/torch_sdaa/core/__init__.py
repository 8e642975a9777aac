"""torch_sdaa.core."""
