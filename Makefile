# What a developer runs, in an environment with '.[test]'. CI runs .ci/run.
.PHONY: quick test mutations lint types

quick:  ## all tests but those that take seconds each: two minutes on two cores
	python -m pytest -q -n 2 -m "not slow"

test:  ## all tests, as the README has them
	python -m pytest -q -n 2

mutations:  ## deliberate faults, each of which a test must see
	python -m pytest -q -n 2 -m mutations tests/mutations

lint:  ## formatter, linter, import rules
	ruff format --check .
	ruff check .
	lint-imports

types:  ## both type checkers
	mypy
	basedpyright
