"""Count oracles under local trust."""
