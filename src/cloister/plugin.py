"""Names for authors of plugins: ``from cloister.plugin import Spec, hookimpl``.

``plugin.pyi``, beside this file, lists the names. Each is imported from its module on first use, so that a manifest
loads neither NumPy nor SciPy.
"""

from cloister._lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
