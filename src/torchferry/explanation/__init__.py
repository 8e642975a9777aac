"""Says what the errors in a log mean: which came first, why, and what to do. Imports no torch.

lines.py       what stands before a line's text, colours, the rank, the time; tracebacks of several processes at once
rules.py       which rule fits a line; the rules are data, vendors/<name>/errors.toml
scanning.py    finds the lines that may speak of errors, in blocks of bytes; which need no closer look, for logs repeat themselves
reading.py     one log from beginning to end: its findings, which belong together, what torchrun says of the ranks
explaining.py  all logs of a run, a message, a code, a crash: the cause before its consequences
report.py      what is said of it, as a page and as JSON
"""
