"""What a study says about its hyperparameters: numbers as frozen dataclasses, from the store alone."""
