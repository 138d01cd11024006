"""What the processor offers to a program: compiled functions, and threads.

Read `native.py` first: LLVM IR becomes a function. `threads.py` shares work among threads of
ours, `openmp.py` among those of a library that has its own, and `blas.py` says how many NumPy's
products take.
"""
