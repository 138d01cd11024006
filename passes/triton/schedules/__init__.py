"""The sizes of a kernel's blocks, and how it walks them: its schedule.

Read `schedule.py` first: what a schedule is chosen for, which are legal, and what it is as text.
The default follows from extents (`tiling.py`), another one is given by a person (`given.py`) or
taken from the cost model (`choosing.py`), and what does not run is made more carefully
(`rungs.py`).
"""
