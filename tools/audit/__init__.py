"""An independent judge of a conversion: classifies every CUDA word of the original, then checks the result.

It shares no code with TorchFerry, so that a mistake in the rules can't hide behind the same mistake here.
"""
