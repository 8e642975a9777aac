"""torch_sdaa.utils."""
