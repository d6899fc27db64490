"""Every number we publish, as a command: `python -m bench.NAME [--quick]`.

Each prints a table with our figure, the peer's, the bound and the bar, then one JSON line; exit code 0 means every bar
holds. `python -m bench.prove` runs them all.
"""
