"""Learning from trajectories: supervised warm start and GRPO."""
