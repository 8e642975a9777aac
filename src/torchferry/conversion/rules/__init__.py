"""The conversion rules, one module each. A new rule is a new file here; nothing else changes."""
