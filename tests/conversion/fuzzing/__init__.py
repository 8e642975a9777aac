"""A fuzzer of the converter: made-up modules, and what must hold for each. `python -m tests.conversion.fuzzing --help`."""
