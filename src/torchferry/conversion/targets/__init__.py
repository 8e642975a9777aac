"""Targets that are no single vendor: portable code, and code that keeps CUDA beside a vendor's device."""
