"""Allmende: who runs next, where, until when, at whose expense - decided, explained and replayable.

`model` holds the values, `engine` the pure decisions; the other packages give the engine a world to act in.
Imports go one way: cli, boot > control > backend, sim > ports > metering > engine > model.
"""

__version__ = "0.1.0"
