"""Operations on NumPy arrays, part by part: what the reference and numpy executors are made of.

Read `walk.py` first, which runs `@main` operation by operation, then `mapfold.py`: cells are read
(`access.py`; `gathering.py`, `blocks.py` and `taking.py` where that is more than a view), bodies
evaluated (`scalar.py`, in the numbers of `arithmetic.py`), and states kept, folded and scanned
(`states.py`, `moving.py`, `scans.py`). Contractions are products of matrices (`contracting.py`).
"""
