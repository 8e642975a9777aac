"""The least time in which a device can do an operator, from the shapes of its inputs."""
