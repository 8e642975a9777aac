"""What every Python process that a test starts does first: Python imports a module of this name from its path.

Importing PyTorch makes a million objects, none of them garbage, and to look for some takes a sixth of the time of a
process that trains a few steps. Collecting less often changes nothing else.
"""

import gc

gc.set_threshold(20_000)
