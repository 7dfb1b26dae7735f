"""How much each hyperparameter matters: analyses of finished studies, and their page."""
