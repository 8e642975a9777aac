"""Accuracy and speed of a run: read from logs, tables and TorchFerry's own files, and compared with the original's."""
