"""Report of a result as one HTML page: its clusters, its privacy promise and the budget spent.

It shows released values and public facts: no row is read, and the page fetches nothing.
"""

from cloister.showing.report.page import html_of

__all__ = ["html_of"]
