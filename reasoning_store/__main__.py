"""``python -m reasoning_store``: the command line."""

import sys

from reasoning_store.cli import main

sys.exit(main())
