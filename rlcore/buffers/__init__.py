"""From batches to minibatches."""
