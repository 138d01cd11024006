"""Executors: the ways to run a program on NumPy arrays, behind one small interface.

Read `executor.py` first: what an executor is, and what it returns. `reference.py` is the
simplest, and what all others must agree with; `numpy_executor.py` runs shard by shard. What they
are made of is in `arrays`; `triton` runs programs as kernels. `prepared` makes programs ready for
many calls, and `cpu` is what it computes with: compiled functions, and threads. `program.py`,
`fitting.py`, `constants.py` and `externals.py` are about what goes into a program and comes out,
however it is run.
"""
