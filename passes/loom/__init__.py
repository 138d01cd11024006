"""Passes that rewrite loom: simplify, shard, fuse, expand.

Each pass is a module here, named like it; `unfuse.py` is one to read first. What passes are made
of is in packages:

* `rebuilding`: operations that differ in a few respects, and bodies put together; for all passes.
* `simplification`: what `loom-simplify` folds away.
* `fusion`: what `loom-fuse` joins; `grouping`: what `loom-group` makes one kernel.
* `derivation`: which folds `loom-derive` makes one pass; `masks`: what `loom-mask-to-domain`
  finds.
* `shards`: partitions spelled out; `complex_numbers`: pairs of real ones.
"""
