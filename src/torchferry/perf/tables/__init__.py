"""Tables that profilers write beside their traces, as columns. Imports no torch."""
