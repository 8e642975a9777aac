"""Cases of one operator: a test that calls it on the CPU and on a vendor's device, and compares the two."""
