"""One operation as a kernel, and what all kernels are written with.

Read `mapfold.py` first: an operation apart from the IR around it. `lowering.py` makes its kernel;
a `KernelWriter` (`writer.py`) holds it meanwhile, with its tensors (`ports.py`, `descriptors.py`)
and the steps that folds and scans take (`steps.py`). Which folds are matrix products follows from
bodies and projections (`contraction.py`, `products.py`). `scans.py` and `merging.py` are for the
other forms.
"""
