"""Reports: what the store holds of a study, as one HTML page that needs no network."""
