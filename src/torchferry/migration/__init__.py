"""The migration folder, which keeps the results of one migration, its page, and `ferry migrate`."""
