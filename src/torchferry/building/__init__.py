"""Compiles our C++ sources once, for the PyTorch that is installed, and keeps what comes of them in the cache."""
