"""Two runs side by side, operator by operator."""
