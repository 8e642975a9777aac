"""apex.contrib."""
