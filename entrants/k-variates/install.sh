"$BENCH_PYTHON" -c "import cloister_baselines" 2> /dev/null || {
  echo "install the plugin beside cloister: pip install ./examples/cloister-baselines"
  exit 1
}
