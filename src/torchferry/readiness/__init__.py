"""Which operators a program uses, which of them a vendor's device has, and a reproducible test case for one."""
