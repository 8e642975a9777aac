"""The user's own rules: their files, and what the converter makes of them."""
