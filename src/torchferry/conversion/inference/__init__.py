"""What a name is: a device, a backend, or something else, from the code around it and across modules."""
