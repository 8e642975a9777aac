"""Performance: collect a profile, read any vendor's trace, name the bottleneck and its remedy."""
