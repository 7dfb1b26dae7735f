"""The parts that methods are made of: objectives, batches, prepared datasets, ranks."""
