"""Functions that allocate buffers and launch kernels: what runs on the host.

Read `functions.py` first, then `operations.py`: functions over tensors become functions over
buffers, and each operation or group in them becomes launches of its kernel, which a `Launcher`
makes (`launching.py`). Views, constants and assemblies are in `tensors.py` and `in_place.py`.
"""
