"""One machine: its devices (declared), its clock, and each pod as a group of real processes.

`devices` reads what was declared, `process` is one pod, `world` the gang's environment, `backend` the port.
"""
