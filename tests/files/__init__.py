"""Files of our own making."""
