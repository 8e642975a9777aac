"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

# Examples are not timed: a busy machine must not fail a test.
settings.register_profile("project", deadline=None)
settings.load_profile("project")
