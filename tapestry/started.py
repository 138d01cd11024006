"""When this process began to import Tapestry: sources that are newer are not those that run."""

from time import time
from typing import Final

STARTED: Final = time()
"""Seconds since the epoch, as files have them."""
