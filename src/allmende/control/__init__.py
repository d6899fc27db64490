"""The loop between the engine and a world: observe, apply, plan, append to the journal, act.

`loop` turns it, `journal` keeps what happened and what was decided, and reads it back.
"""
