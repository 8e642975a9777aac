"""Files of our own making: written aside and put in place whole, and known again if a run was killed. Imports nothing else."""
