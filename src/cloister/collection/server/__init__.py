"""Server of a plan: turns reports into answers, next rounds and centres."""
