package engine

// Tallied says whether a token that comes next finds the pool's counters summed up.
func Tallied(m *Model) bool { return m.token.tallied == m.stats.Steps }
