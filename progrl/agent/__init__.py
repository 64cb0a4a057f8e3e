"""The agent: its model, the engines that sample from it, and its seat in an episode."""
