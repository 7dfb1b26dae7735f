"""The engine: plans sweeps, trains and searches, stores results, reads them again and shows them."""
