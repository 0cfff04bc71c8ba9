"""Where PyTorch is not installed: as much of it as a linear loss over log-probabilities needs. The SDK's
forward_backward_custom asks torch for leaves, lets the caller's loss run on them, and reads their gradients; it trains
nothing itself."""

float32 = "float32"


class Tensor:
    """A list of numbers or one number, linear in the leaves that it came from: parts are (leaf, factors) pairs."""

    def __init__(self, data, parts=()):
        self.data, self.parts, self.grad = data, list(parts), None
        self.ndim = 1 if isinstance(data, list) else 0

    def __mul__(self, factors):
        factors = factors.data if isinstance(factors, Tensor) else [factors] * len(self.data)
        return Tensor([a * b for a, b in zip(self.data, factors, strict=True)],
                      [(leaf, [a * b for a, b in zip(f, factors, strict=True)]) for leaf, f in self.parts])

    def sum(self):
        return Tensor(sum(self.data), self.parts)

    def __add__(self, other):
        return Tensor(self.data + other.data, self.parts + other.parts)

    def __neg__(self):
        if self.ndim == 0:
            return Tensor(-self.data, [(leaf, [-a for a in f]) for leaf, f in self.parts])
        return self * -1.0

    def backward(self):
        for leaf, factors in self.parts:
            before = leaf.grad.data if leaf.grad else [0.0] * len(factors)
            leaf.grad = Tensor([a + b for a, b in zip(before, factors, strict=True)])

    def tolist(self):
        return self.data

    def item(self):
        return self.data


def tensor(data, dtype=float32, requires_grad=False):
    leaf = Tensor(list(data))
    if requires_grad:
        leaf.parts = [(leaf, [1.0] * len(leaf.data))]
    return leaf
