# Makes the environment in the folder $BENCH_ENV, which run gets, too. Delete this file if nothing is to be installed.
# For Python packages:
#   "$BENCH_PYTHON" -m venv "$BENCH_ENV/venv"
#   "$BENCH_ENV/venv/bin/pip" install --quiet "some-package==1.2.3"
exit 0
