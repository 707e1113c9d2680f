"""Streams of LLM providers: what they can be, and what any bytes are worth as one.

This package knows nothing of the code under test.  It draws replies and streams (:mod:`.draw`), writes them
in any lawful style, edits and cuts them, and judges bytes by the letter of the framing and the provider's
lifecycle table (:mod:`.judge`).
"""
