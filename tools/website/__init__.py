"""The documentation site: docs/en and docs/zh, and pages made of parsers, rules, vendors and schemas.

    python -m tools.website --output site

`staging.py` lays the Markdown of one language into a folder, `navigation.py` orders it, `markdown.py` turns what GitHub
reads into what MkDocs reads, `building.py` runs MkDocs. The modules `..._pages.py` make pages; nothing of them is committed.
"""
