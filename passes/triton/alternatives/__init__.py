"""Other ways to compute a program, taken where the cost model finds that they take less time.

Each module rewrites operations before they become kernels: `splitting.py` is one to read first.
What an operation would take by itself is asked of a program of its own (`alone.py`).
"""
