"""The papers' tables run again: checks of their claims, plans of their cells, ours beside what is printed."""
