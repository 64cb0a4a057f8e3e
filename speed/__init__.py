"""Speed of progrl beside what one would use instead, measured in one run on one machine.

Each way of doing a job runs in a process of its own (`worker`), which waits while another is timed;
`compare` lets them take turns. `ways` holds the jobs, `measures` what is made of their times.
"""
