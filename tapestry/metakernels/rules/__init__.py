"""The rewrite rules that come with Tapestry, one file per subject (see `tapestry.rewriting`)."""
