"""Graphs of one product, as a pass over the graph of a compiled update finds them."""

from torch import fx


def graph_of(operator, *tensors, **further):
    """Return a graph that calls an operator on inputs with these tensors."""
    graph = fx.Graph()
    inputs = [graph.placeholder(f"input_{number}") for number in range(len(tensors))]
    for node, tensor in zip(inputs, tensors, strict=True):
        node.meta["val"] = tensor
    node = graph.call_function(operator, tuple(inputs), further)
    node.meta["val"] = operator(*tensors, **further)
    graph.output(node)
    return graph
