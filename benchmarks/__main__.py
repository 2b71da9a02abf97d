"""``python -m benchmarks``: the one entry point."""

from benchmarks.command import main

raise SystemExit(main())
