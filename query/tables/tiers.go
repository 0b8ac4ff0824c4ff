package tables

import (
	"wpptrace/compress/wpp"
	"wpptrace/query/tiers"
)

// mostInTiers is of how many instructions the paper's tiers are made: they take some microseconds
// and 100 bytes each.
const mostInTiers = 1 << 20

// inTiers makes the columns of tables 2 and 3 that are not of the file: the paper's tiers of the
// thread that executed most.
func inTiers(s *wpp.Snapshot, n *counted) ([]Row, error) {
	if len(s.Threads) == 0 {
		return nil, nil
	}
	t, err := tiers.Of(s, n.largest, mostInTiers)
	if err != nil {
		return nil, err
	}
	of := func(c *tiers.Component) (first, second float64) {
		return ratio(c.Before, c.First), ratio(c.Before, c.Second)
	}
	stamps1, stamps2 := of(&t.Timestamps)
	values1, values2 := of(&t.Values)
	edges1, edges2 := of(&t.Edges)
	rows := []Row{
		{"2", "in the paper's tiers: instructions, the first", float64(t.Instructions), "", 0},
		{"2", "timestamps, tier 1: ratio", stamps1, "", 37.74},
		{"2", "timestamps, tier 2: ratio", stamps2, "", 230.99},
		{"2", "values, tier 1, groups with shared patterns: ratio", values1, "", 2.63},
		{"2", "values, tier 2: ratio", values2, "", 11.51},
		{"3", "edge labels of these instructions", float64(t.Labels), "", 0},
		{"3", "of these, local ones, which are inferred", float64(t.Local), "", 0},
		{"3", "and of the rest, those that others share", float64(t.Shared), "", 0},
		{"3", "edge labels, tier 1: ratio", edges1, "", 14.43},
		{"3", "edge labels, tier 2: ratio", edges2, "", 130.31},
	}
	for _, of := range []struct {
		table, what string
		*tiers.Component
	}{{"6", "timestamps, tier 2", &t.Timestamps}, {"7", "values, tier 2", &t.Values},
		{"9", "edge labels, tier 2", &t.Edges}} {
		rows = append(rows, speed(of.table, of.what+", forward", number*of.Numbers, of.Forward, 0),
			speed(of.table, of.what+", backward", number*of.Numbers, of.Backward, 0))
	}
	return rows, nil
}
