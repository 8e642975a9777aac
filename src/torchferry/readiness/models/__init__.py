"""Captures the operators of a model that a factory makes, with inputs that are drawn: no training program is needed."""
