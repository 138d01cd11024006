"""The lowering from loom to Triton kernels."""
