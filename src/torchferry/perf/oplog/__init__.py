"""Host logs of a vendor's runtime: which operators were called, with what, and which were compiled when."""
