"""Loops over arrays, compiled for how these lie in memory: many scalar operations in one pass.

Read `loop.py` first: one loop. `fusing.py` finds which calls of a tape are computed by loops, and
`looping.py` where these are worth to be compiled. A body of an operation is a few loops by itself
(`looped_bodies.py`). In a fold by any monoid, states merge as `merging.py` says.
"""
