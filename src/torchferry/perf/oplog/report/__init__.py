"""What host logs tell, as text, JSON, CSV, Markdown, and the summary of the vendor's guide."""
