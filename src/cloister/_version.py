"""The version, which plans and results name; apart, so that nobody imports the package's face for it."""

__version__ = "0.1.0"
