"""Records on disk: one HDF5 file per process."""
