"""Reading and rewriting Python text. Knows no vendor and no torch."""
