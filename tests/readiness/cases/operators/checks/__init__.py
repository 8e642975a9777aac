"""Cases of many operators on a vendor's simulated device."""
