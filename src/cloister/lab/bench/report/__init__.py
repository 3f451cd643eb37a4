"""Report of a benchmark's results: tables as text, and one HTML page that fetches nothing."""

from cloister.lab.bench.report.page import page_of
from cloister.lab.bench.report.summary import BenchSummary
from cloister.lab.bench.report.text import text_of

__all__ = ["BenchSummary", "page_of", "text_of"]
