"""`python -m contrasweep`: the command line."""

from contrasweep.tuning.cli import main

main()
