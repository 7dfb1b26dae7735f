"""Replay: compare searches on the recorded learning curves of finished studies, without training."""
