"""Windows: what a window holds at an instant, the panes that build it, and when answers are due."""
