"""Speed of progrl beside what one would use instead, measured in one run on one machine."""
