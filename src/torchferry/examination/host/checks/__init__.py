"""The checks, one module each with `check(machine)`. A module that is added here is found; there is no list."""
