"""The lowering from loom to Triton kernels.

`loom_to_triton.py` is the pass: read it first, then `kernels.lowering`, which makes the kernel of
one operation. `tasks.py` says which kernels of a program have a schedule to choose. In packages,
from the bottom up:

* `tiles`: values of a kernel, and what a body computes of them.
* `indexing`: the points that a program computes, and where these lie in tensors.
* `kernels`: one operation as a kernel.
* `groups`: several operations as one kernel.
* `rewrites`: kernels that are written, made faster or exact.
* `schedules`: sizes of blocks, and how kernels walk them: which are legal, and which is taken.
* `cost`: how long a kernel takes on a device, without running it.
* `alternatives`: other ways to compute a program, taken where they cost less.
* `host`: functions that allocate buffers and launch kernels.
"""
