"""The world, faked: a virtual clock and a world that answers decisions the way machines do, under the same engine.

`heap` is the clock and what is due; `world` drives apply and plan; `traces` reads recorded jobs,
`replay` runs them, `openb` and `philly` measure.
"""
