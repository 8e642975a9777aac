"""What each rank of a group checks: every function `check_*` is called on all ranks at the same time."""
