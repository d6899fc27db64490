"""Scenes: a cluster, its projects, what happens and what must hold, as a file that can be run and checked.

`read` reads our own schema (docs/scenes.md), `cases` the neutral case layout; both give the one `value.Scene` that
`run` plays in the simulated world and `check`, `never` and `measure` judge from the engine's state alone.
"""
