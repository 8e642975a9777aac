"""What a comparison of records has found, as text, JSON, CSV, a workbook, a page; `render.py` is the door. No torch."""
