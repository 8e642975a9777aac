"""Analyses of performance as text, JSON, Markdown and a page; `render.py` is the door. Imports no torch."""
