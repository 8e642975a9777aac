"""Turns the fact tables into vendor folders: hand-made knowledge, readers of facts, writers of tables."""
