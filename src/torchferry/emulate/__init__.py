"""A vendor's own plugin on this machine without the vendor's hardware: its toolkit is replaced, and computes on the CPU."""
