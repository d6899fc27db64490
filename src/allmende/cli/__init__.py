"""The commands. `main` declares them all and imports what one needs only when it runs, so that --help is quick.

`run` and its file, board and story; `demo`; `replay` and `sim` for the simulated world.
"""
