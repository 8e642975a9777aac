"""Parts of a device module (torch.<type>) that are the same for every device."""
