"""Recorded traces read into one neutral table of jobs (`table`), one module per source.

A reader returns rows and a `Tally` of what it read, skipped and why; bad input is a `Mistake` with file and line.
Allmende ships none of these files: a reader says where upstream keeps them.
"""
