"""The version of contrasweep, for the package and for the stored records."""

__version__ = "0.1.0"
