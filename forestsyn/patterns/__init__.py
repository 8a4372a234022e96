"""Classic algorithms as schedules: rings, trees, doubling, all-pairs, hierarchical. Candidates beside the forest."""
