"""streamfuzz: find the bugs in code that reads LLM streams.

Describe a parser with :func:`target`, search with :func:`fuzz`, and keep what was found as case files.
"""

from .target import Delta, Final, Incomplete, Known, Release, Snapshot, Target, UsageError, target

__all__ = ["Delta", "Final", "Incomplete", "Known", "Release", "Snapshot", "Target", "UsageError", "target"]
