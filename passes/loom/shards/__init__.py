"""How `loom-expand-shards` spells partitions out: groups by shard, and trees of merges.

Read `merge_trees.py` first: runs of states are merged into partial ones.
"""
