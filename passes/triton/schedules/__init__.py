"""The sizes of a kernel's blocks, and how it walks them: its schedule.

Read `task.py` first, what a schedule is chosen for, then `schedule.py`: the default, and which
ones are legal. The default follows from extents (`tiling.py`), another one is given by a person
(`given.py`) or taken from the cost model (`choosing.py`) among those worth measuring
(`candidates.py`), and what does not run is made more carefully (`rungs.py`).
"""
