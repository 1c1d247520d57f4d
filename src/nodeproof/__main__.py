"""Lets ``python -m nodeproof`` run the command line."""

import sys

from nodeproof.cli.main import main

sys.exit(main())
