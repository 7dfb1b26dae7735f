"""Training one experiment: the loop `pretrain`, its optimizers, its scores, its checkpoints."""
