"""How `loom-group` finds operations that become one kernel.

Read `clusters.py` first: neighbours are joined as long as one kernel can be made. Whether
operations can be a group, `plan.py` says, by how they align (`alignment.py`, `places.py`), and
`one_kernel.py` whether that would be a good kernel. What is too large to store is copied for its
readers (`recomputing.py`).
"""
