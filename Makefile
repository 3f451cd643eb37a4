# What a developer runs, in an environment with '.[test]'. CI runs .ci/run.
.PHONY: test thorough long mutations coverage docs site pages lint types mypy basedpyright stale dist release

test:  ## the first ring, the README's: at every save
	python -m pytest -q -n 2

thorough:  ## the second ring: processes, kills, servers, databases, browsers, pages, long statistics
	python -m pytest -q -n 2 -m thorough

long:  ## the third ring: what has a shorter case in the others, at full length; before a release
	python -m pytest -q -n 2 --dist worksteal -m long

mutations:  ## the last ring: deliberate faults, each of which a test must see
	python -m pytest -q -n 2 --dist loadgroup -m mutations tests/mutations

coverage:  ## lines that tests reach: above 97% of what privacy rests on, folder by folder
	python -m pytest -q -n 2 --cov=cloister --cov-report=
	for folder in core accounting plugins/oracles; do \
	  python -m coverage report --include="*/cloister/$$folder/*" --skip-covered --show-missing --fail-under=97 || exit 1; \
	done

docs:  ## the site, into docs/_build/html; in an environment with '.[docs]'. A warning is an error, and so is a dead link
	python -m sphinx -b html -W --keep-going -n -q docs docs/_build/html

site: docs  ## the site of this version beside those of others, in the folder SITE
	python docs/_ext/versions.py docs/_build/html $(SITE)

pages:  ## every command and all Python on every page runs
	python -m pytest -q -m "thorough or not thorough" tests/docs

lint:  ## formatter, linter, import rules
	ruff format --check .
	ruff check .
	lint-imports
	zizmor --offline --quiet --no-progress --strict-collection --persona pedantic .github

types: mypy basedpyright  ## both type checkers

mypy basedpyright:
	$@

stale:  ## which pages have figures that are older than the code: whether they are still right is for a person to say
	python benchmarks/pages.py --stale

dist:  ## a release's files, into dist/, from the last commit: built twice and compared, a bill of materials, checksums
	.ci/run dist sbom

release:  ## all that comes before a version, hours; makes the environment that it needs. docs: CONTRIBUTING, "How a version is made"
	test -z "$$(git status --porcelain)"  # what is tested is what is built: commit first
	.ci/run
	PATH="$(CURDIR)/.venv/bin:$$PATH" $(MAKE) long mutations stale
	.ci/run sbom  # beside the wheel that was tested
