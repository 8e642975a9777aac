"""Judges one operator's results: computed again from its own inputs in double precision, with margins for rounding."""
