"""Says what the errors in a log mean: which came first, why, and what to do. Imports no torch.

lines.py       what stands before a line's text: colours, the rank, the time
scanning.py    finds the lines that may speak of errors, in blocks of bytes
rules.py       which rule fits a line; the rules are data, vendors/<name>/errors.toml
tracebacks.py  gathers Python's tracebacks, also where several processes write at once
launcher.py    what torchrun says about the rank that failed first
keeping.py     the findings of one log, and which belong together
repetitions.py lines that need no closer look, for logs repeat themselves
reading.py     one log from beginning to end
ordering.py    the cause before its consequences, the rank that failed first
explaining.py  all logs of a run, a message, a code
crash.py       for a program that `ferry run` has started
report/        text, Markdown, JSON
"""
