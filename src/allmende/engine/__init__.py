"""Pure decisions: `apply(state, entry)` folds what happened, `plan(state, now)` says what to do.

No clock, no randomness, no input or output: the same state gives the same decisions, bit for bit.
"""
