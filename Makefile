# What a developer runs, in an environment with '.[test]'. CI runs .ci/run.
.PHONY: quick test mutations coverage docs lint types

quick:  ## all tests but those that take seconds each: two minutes on two cores
	python -m pytest -q -n 2 -m "not slow"

test:  ## all tests, as the README has them
	python -m pytest -q -n 2

mutations:  ## deliberate faults, each of which a test must see
	python -m pytest -q -n 2 -m mutations tests/mutations

coverage:  ## lines that tests reach: above 97% of what privacy rests on, folder by folder
	python -m pytest -q -n 2 --cov=cloister --cov-report=
	for folder in core accounting plugins/oracles; do \
	  python -m coverage report --include="*/cloister/$$folder/*" --skip-covered --show-missing --fail-under=97 || exit 1; \
	done

docs:  ## links lead somewhere, commands exist, Python runs
	python -m pytest -q tests/test_docs.py

lint:  ## formatter, linter, import rules
	ruff format --check .
	ruff check .
	lint-imports

types:  ## both type checkers
	mypy
	basedpyright
