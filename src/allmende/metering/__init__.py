"""What was used, by whom, in which stretch of time: exact amounts in GPU units x microseconds.

`window` cuts use into windows, local days, weeks and months. Nothing here reads a clock or a file.
"""
