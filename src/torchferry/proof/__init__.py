"""The proof of a migration: the original on the CPU and the migrated program on the simulated device, compared."""
