"""Programs as Triton kernels, on a GPU or in Triton's interpreter.

Read `executor.py` first: lower, print, import (`module.py`), and run on one of the `devices.py`.
A GPU runs kernels that are compiled once (`compiled.py`), and made more carefully where it
refuses them (`ladder.py`). Without one, kernels run on NumPy arrays (`interpreting.py`,
`arrays.py`) in Triton's interpreter (`interpreter.py`), which is corrected meanwhile
(`corrections.py`).
"""
