"""What flows are made of: running a stage, publishing artifacts, summing up, local servers."""
