"""streamfuzz: find the bugs in code that reads LLM streams."""
