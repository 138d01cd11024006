"""Folds of whole arrays, whatever the monoid; and scans.

Read `whole.py` first, which finds how states fold; `folding.py` has the functions that then fold
them, and `halves.py` is for monoids that NumPy has no reduction for. Folds over windows go point
by point of the window (`unrolled.py`, `looped_windows.py`); where each point counts at one place,
the work is that of the points (`scatters.py`). `scanning.py` keeps all states on the way.
"""
