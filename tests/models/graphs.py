"""Traced TensorFlow graphs."""

from benchmarks.traced_products import CONDITIONALS, taken_operations


def other_operations(graph):
    """Those of the branches that run where the fast form is not safe."""
    for operation in taken_operations(graph):
        if operation.type in CONDITIONALS:
            branch = graph._get_function(operation.get_attr("else_branch").name)
            yield from taken_operations(branch.graph)
