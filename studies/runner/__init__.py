"""Studies: which arm does better at equal budget, over several seeds, from one declarative file to one page."""
