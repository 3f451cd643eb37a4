def made(): return {}
