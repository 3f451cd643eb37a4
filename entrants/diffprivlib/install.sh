# an environment of its own: its versions of NumPy and scikit-learn need not be those of cloister
set -eu
"$BENCH_PYTHON" -m venv "$BENCH_ENV/venv"
"$BENCH_ENV/venv/bin/pip" install --quiet --disable-pip-version-check "diffprivlib==0.6.6" "scikit-learn<1.6" "setuptools<81"
"$BENCH_ENV/venv/bin/python" -c "from diffprivlib.models import KMeans"
