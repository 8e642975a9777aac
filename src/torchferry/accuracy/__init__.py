"""Records what operators compute, replays it on another device, and names the operator that is wrong."""
