"""streamfuzz: find the bugs in code that reads LLM streams.

Describe a parser with :func:`target`, search with :func:`run`, make a test of it with :func:`fuzz_test`, and
keep what was found as case files.
"""

from .campaign import Reported, Result, run
from .case import Case, CaseFile
from .engines import Budget
from .explain import Finding
from .target import Delta, Final, Incomplete, Known, Release, Snapshot, Target, UsageError, target
from .testing import FuzzFailure, fuzz_test

__all__ = [
    "Budget",
    "Case",
    "CaseFile",
    "Delta",
    "Final",
    "Finding",
    "FuzzFailure",
    "Incomplete",
    "Known",
    "Release",
    "Reported",
    "Result",
    "Snapshot",
    "Target",
    "UsageError",
    "fuzz_test",
    "run",
    "target",
]
