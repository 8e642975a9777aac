"""What an explanation says, as text, Markdown and JSON."""
