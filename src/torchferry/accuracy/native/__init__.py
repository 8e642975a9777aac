"""One pass over memory: statistics of a tensor, differences of two. In C, with a stand-in for machines without a compiler."""
