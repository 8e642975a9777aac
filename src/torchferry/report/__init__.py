"""Findings to terminal, JSON, SARIF, Markdown, CSV, XLSX, GitHub annotations and HTML."""
