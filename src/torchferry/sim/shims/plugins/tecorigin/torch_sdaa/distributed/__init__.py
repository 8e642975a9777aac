"""torch_sdaa.distributed: importing it is what ports do to have the process group's backend."""
