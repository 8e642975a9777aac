"""Files other than Python modules: scripts, container files, requirements, configurations, notebooks."""
