"""Rounds as SQL: the kinds of ``docs/reference/format.md`` as expressions of Ibis, which an engine runs."""
