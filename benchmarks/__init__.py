"""The costs of the library, of the bare driver and of its rivals, in one run.

``python -m benchmarks`` measures; ``make bench`` makes the rivals' environment first. The
method is in docs/benchmarks.md. ``table`` holds every workload as data.

It must not know the library's insides where the public names say the same.
"""
