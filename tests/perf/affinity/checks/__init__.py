"""What must hold of the affinity forms on every device: each beside the plain form."""
