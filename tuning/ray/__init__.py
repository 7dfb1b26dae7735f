"""Everything that runs on Ray; no other part of contrasweep imports it."""

from tuning.packages import refuse_shadowed_packages

# A worker unpickles its class from here: before it imports what may not be ours.
refuse_shadowed_packages()
