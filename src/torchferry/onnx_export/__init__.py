"""From a checkpoint to ONNX, checked against PyTorch, and on to the vendor's offline format."""
