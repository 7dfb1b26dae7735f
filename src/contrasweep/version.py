"""The version of contrasweep, which the front door and the stored records share."""

__version__ = "0.1.0"
