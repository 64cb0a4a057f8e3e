"""The records that everything else reads and writes: tasks, messages, tools, trajectories."""
