"""A training program for one card, taken apart so that it can be written for many."""
