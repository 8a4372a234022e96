"""The pipeline: the stages strung together, each result verified before it is returned.

`bound`, `synthesize` and `compile_topology` go one step further each. They print nothing; an observer hears of every
stage. They live in the modules of their names, so that a caller loads no more than it needs.
"""
