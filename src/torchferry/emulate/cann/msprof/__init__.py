"""The program `msprof` of the emulated CANN: makes tables and a timeline of what its libraries have recorded."""
