"""Counts which of the SDK's public methods a program has called itself: what one method calls of another does not count."""
import functools
import inspect
import sys

import kinds


class Calls:
    """Watches classes; program are the files whose calls count. Those of kinds.py, which passes calls on, count for them."""

    def __init__(self, program):
        self.program = {str(p) for p in program} | {kinds.__file__}
        self.public, self.made = {}, set()

    def watch(self, owner, wanted=lambda name: True):
        """Every public method and property of a class or a module's functions, and the ways into a with block."""
        entered = ("__enter__", "__exit__", "__aenter__", "__aexit__")
        for name, value in list(vars(owner).items()):
            if name.startswith("_") and name not in entered or not wanted(name):
                continue
            label = f"{owner.__name__.rsplit('.')[-1]}.{name}"
            if isinstance(value, classmethod):
                setattr(owner, name, classmethod(self._function(label, value.__func__)))
            elif inspect.isfunction(value):
                setattr(owner, name, self._function(label, value))
            elif isinstance(value, property):
                setattr(owner, name, property(self._function(label, value.fget)))
            elif isinstance(value, functools.cached_property):
                setattr(owner, name, property(self._function(label, value.func)))
            else:
                continue
            self.public[label] = value

    def _function(self, label, function):
        @functools.wraps(function)
        def counted(*args, **kwargs):
            if sys._getframe(1).f_code.co_filename in self.program:
                self.made.add(label)
            return function(*args, **kwargs)

        return counted

    def left(self):
        """The public names that the program has not called."""
        return sorted(self.public.keys() - self.made)
