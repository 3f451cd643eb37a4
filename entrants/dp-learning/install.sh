# It is on no package index, and a stranger's source is not run unread: build it yourself, from a commit that you read.
set -eu
"$BENCH_PYTHON" -c "from clustering import clustering_algorithm, clustering_params" 2> /dev/null || {
  echo "it is on no package index: build the folder learning/ of the repository google/differential-privacy, from a" \
    "commit that you have read, into the Python that runs cloister"
  exit 1
}
