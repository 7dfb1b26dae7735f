"""The papers' tables run again: plans, claims, verdicts, results, pages."""
