"""How far a sweep, final runs or a training are, and how long they still take."""
