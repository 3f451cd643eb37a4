from tests.vectors import plans
PLAN=plans.planned("wrong","one-round")
def made(b): return []
