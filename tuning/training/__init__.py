"""Training: objective, optimizers, schedule, probes, and `pretrain`, which ties them together."""
