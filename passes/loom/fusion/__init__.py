"""What `loom-fuse` joins: conditions, prices, and the joining itself."""
