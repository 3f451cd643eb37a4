"""Rounds as SQL: the kinds of ``docs/reference/format_questions.md`` as expressions of Ibis, which an engine runs."""
