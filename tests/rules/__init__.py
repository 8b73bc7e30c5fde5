"""
Rules that every workflow, the template, the source tree and the example events keep.

A rule is a function `rule_…(document)` that answers with its complaints. It must have none about the real
document, and at least one about each copy that its test spoils on purpose.
"""
