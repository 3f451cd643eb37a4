"""The kit of oracles that add integer noise to exact totals: see ``oracle``."""
