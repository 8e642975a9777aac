"""The rules, the planner that applies them to a project, the writers."""
