"""`ferry zoo`: a migrated model as a vendor's model zoo wants it, and what is missing in one."""
