"""PyTorch's operators, and which of them a vendor's device has. Imports no torch."""
