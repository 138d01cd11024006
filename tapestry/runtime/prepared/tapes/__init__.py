"""Tapes: calls on arrays, written down once and played for each part of an index space.

Read `tape.py` first, then `recording.py`, which writes operations on one: their members
(`members.py`), what these read (`sources.py`), and sums of products (`contracted.py`).
`shapes.py` and `places.py` say where results lie, `frames.py` plays a tape in that memory. Parts
of several kinds have a tape each (`kinds.py`). What a call computes is said in `meanings.py`, for
who computes it otherwise.
"""
