"""Tests of the nightly job."""
