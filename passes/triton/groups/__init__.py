"""Several operations as one kernel, which stores nothing that only they read.

Read `group.py` first: members, and what they read of each other. `roles.py` says which axis of a
tile each dimension lies on, `lowering.py` then writes the kernel: what members compute
(`members.py`) and fold, block by block (`folding.py`, `cascades.py`, `dots.py`). A group that is
no one kernel is cut into groups that are (`cutting.py`).
"""
