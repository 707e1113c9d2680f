"""The nightly job: many targets, many processes, hours of search, and only what is new is reported."""
