"""How ready devices are for a program, as text, JSON, a workbook, a page ...; `render.py` is the door. Imports no torch."""
