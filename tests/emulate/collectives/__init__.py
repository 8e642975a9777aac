"""Tests of collectives between processes on the emulated CANN."""
