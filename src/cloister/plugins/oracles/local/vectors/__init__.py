"""Vector sums under local trust."""
