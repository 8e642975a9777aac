"""Dumps single operators of a device as the vendors' runtimes do: one file a call, switched by a JSON file."""
