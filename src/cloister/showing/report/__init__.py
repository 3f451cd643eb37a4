"""A result as one page of HTML for people: what was promised, what was spent, and what the clusters are like.

Everything on it comes from the result: released values and public facts. No row is read, and nothing is fetched.
"""

from cloister.showing.report.page import html_of

__all__ = ["html_of"]
