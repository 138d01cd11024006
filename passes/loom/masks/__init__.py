"""How `loom-mask-to-domain` finds masks in bodies, and what follows where they fail."""
