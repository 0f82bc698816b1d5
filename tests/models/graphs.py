"""Traced TensorFlow graphs."""


def taken_operations(graph):
    """Operations that the outputs depend on: TensorFlow leaves out the others.

    Of a conditional, those of the branch that runs where the fast form is safe.
    """
    waiting, seen = [tensor.op for tensor in graph.outputs], set()
    while waiting:
        operation = waiting.pop()
        if operation in seen:
            continue
        seen.add(operation)
        waiting += [tensor.op for tensor in operation.inputs]
        yield operation
        if operation.type in ("If", "StatelessIf"):
            branch = graph._get_function(operation.get_attr("then_branch").name)
            yield from taken_operations(branch.graph)


def other_operations(graph):
    """Those of the branches that run where the fast form is not safe."""
    for operation in taken_operations(graph):
        if operation.type in ("If", "StatelessIf"):
            branch = graph._get_function(operation.get_attr("else_branch").name)
            yield from taken_operations(branch.graph)
