"""Vector-sum oracles under local trust."""
