"""`ferry doctor`: what is wrong with a machine, and the commands that put it right."""
