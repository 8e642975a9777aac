"""One model of a user's program: its modules and scopes, what calls call, where values come from and go."""
