"""Names of the rows of a file of `ferry watch`; the package says what each is of. No torch."""

from torchferry.accuracy.model import MODULE, OUTPUT_GRADIENT

__all__ = ["MODULE", "OUTPUT_GRADIENT"]

LOSS = "loss"
GRADIENT, GRADIENT_NORM, PARAMETERS, UPDATE = "gradient", "gradient_norm", "parameter", "update"
BUFFERS, LEARNING_RATE, SCALE, STEP = "buffer", "learning_rate", "scale", "step"
GROUP_NORM = "group_gradient_norm"
SECONDS, TIME, SKIPPED = "seconds", "time", "skipped"  # arguments of the row of a step
