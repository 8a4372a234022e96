"""Pictures of topologies, trees, loads and times, and the page that holds them all.

Everything here turns plain frozen values into text (SVG, HTML, Vega-Lite specifications) or PNG bytes; nothing is
computed about schedules. `pipeline.show` gathers the values.
"""
