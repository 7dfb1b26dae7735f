"""Reports: a study from the store as one HTML page that needs no network."""
