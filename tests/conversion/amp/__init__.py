"""The passes for mixed precision."""
