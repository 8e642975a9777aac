"""Each group of calls, for one vendor on its simulated device."""
