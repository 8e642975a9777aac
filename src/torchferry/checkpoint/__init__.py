"""Checkpoint files: what is inside them, read without running anything that they hold, and how they are mended."""
