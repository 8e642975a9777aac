"""`ferry doctor host`: what the machine, its libraries and the environment cost a training program."""
