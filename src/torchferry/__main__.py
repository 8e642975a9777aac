"""`python -m torchferry` is `ferry`."""

import sys

from torchferry.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
