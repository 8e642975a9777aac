"""What watches a user's program from inside its process: operators, modules, optimizer steps, source lines."""
