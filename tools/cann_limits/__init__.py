"""Reads what CANN's operator functions take from its open operator repositories, for the emulated CANN."""
