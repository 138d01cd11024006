"""Passes that rewrite loom: simplify, shard, fuse, expand."""
