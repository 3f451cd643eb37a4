# What a developer runs, in an environment with '.[test]'. CI runs .ci/run.
.PHONY: test thorough long mutations coverage docs pages lint types mypy basedpyright

test:  ## the first ring, the README's: at every save
	python -m pytest -q -n 2

thorough:  ## the second ring: processes, kills, servers, databases, browsers, pages, long statistics
	python -m pytest -q -n 2 -m thorough

long:  ## the third ring: what has a shorter case in the others, at full length; before a release
	python -m pytest -q -n 2 -m long

mutations:  ## the last ring: deliberate faults, each of which a test must see
	python -m pytest -q -n 2 --dist loadgroup -m mutations tests/mutations

coverage:  ## lines that tests reach: above 97% of what privacy rests on, folder by folder
	python -m pytest -q -n 2 --cov=cloister --cov-report=
	for folder in core accounting plugins/oracles; do \
	  python -m coverage report --include="*/cloister/$$folder/*" --skip-covered --show-missing --fail-under=97 || exit 1; \
	done

docs:  ## the site, into docs/_build/html; in an environment with '.[docs]'. A warning is an error, and so is a dead link
	python -m sphinx -b html -W --keep-going -n -q docs docs/_build/html

pages:  ## every command and all Python on every page runs
	python -m pytest -q -m "thorough or not thorough" tests/docs

lint:  ## formatter, linter, import rules
	ruff format --check .
	ruff check .
	lint-imports

types: mypy basedpyright  ## both type checkers

mypy basedpyright:
	$@
