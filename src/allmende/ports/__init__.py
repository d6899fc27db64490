"""What the control loop asks of a world: a clock and a backend, as Protocols.

Real processes, a cluster and a fake in the tests implement them; the loop never sees which.
"""
