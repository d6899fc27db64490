"""Cases that do not play out in time: values, annotations, names, settings, windows, judged by the product's parsers.

Each form takes the case's fields and a `Then`, asks the product, and notes what does not hold.
"""
