"""Values only: what a cluster, a project, a workload, an event, a decision and a reason are.

Everything here is frozen, exact and free of input and output; it imports nothing of ours.
"""
