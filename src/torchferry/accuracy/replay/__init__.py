"""Computes recorded operators once more: on another device, in double precision."""
