"""What each accelerator is: one folder of data per vendor, the schema, the loader, the registry."""
