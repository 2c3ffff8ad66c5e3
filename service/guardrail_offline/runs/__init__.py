"""One evaluation run: shards, workers, result files, leaderboards, problems, insights, flips."""
