"""The kit of oracles that add integer noise to exact totals: authors write the noise, its scale and the guarantee (``oracle``)."""
