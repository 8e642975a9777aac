"""`ferry profile`: what it does in the user's process, and around it."""
