"""The dialects, floor by floor: zspace, weft, loom, triton."""
