"""Ways of doing a job, ours and others': each module is imported in its own process alone.

A way is a function that takes a workload (and options), prepares all that is not to be timed, and
returns the function that is: it does the job once and returns facts about it.
"""
