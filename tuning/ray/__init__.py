"""Everything that runs on Ray; no other part of contrasweep imports it."""
