"""Mixed precision for a program that has none: where its training step is, and what the step needs."""
