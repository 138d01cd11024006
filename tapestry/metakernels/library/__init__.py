"""The templates that come with Tapestry: one YAML file per family of operators."""
