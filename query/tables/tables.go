package tables

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/format"
	"wpptrace/query/internal/stream"
	"wpptrace/query/slice"
	"wpptrace/query/values"
)

// A Row is a figure of a table.
type Row struct {
	Table string // its number
	What  string
	Value float64
	Unit  string
	// Paper is the paper's average; 0: it has none. Its rows of ratios are of its second tier, but
	// where What says otherwise.
	Paper float64
}

// The sizes that the paper's traces have before they are compressed, in bytes: a timestamp for each
// statement, a value for each that has one, two timestamps for each dependence. A register has
// eight bytes here, and is counted as of four, as the paper's are: so ratios can be compared.
const (
	timestamp  = 4
	value      = 4
	dependence = 8
	number     = 4 // of a stream of the second tier
)

// mostSlices is how many slices table 9 is the average of.
const mostSlices = 25

// Make makes the tables. It replays all threads four times, makes the graphs of their dependences
// one after the other, and takes their memory: see slice.Of.
func Make(s *wpp.Snapshot) (rows []Row, err error) {
	defer wpp.Recover(&err)
	if !values.Has(s) {
		return nil, values.ErrNone
	}
	n, err := count(s)
	if err != nil {
		return nil, err
	}
	rows, err = sizes(s, n)
	if err != nil {
		return nil, err
	}
	tiers, err := inTiers(s, n)
	if err != nil {
		return nil, err
	}
	rows = append(rows, tiers...)
	growth, err := growth(s, n)
	if err != nil {
		return nil, err
	}
	rows = append(append(rows, n.histories()...), growth...)
	rows = append(append(rows, construction(s, n)...), controlFlow(s)...)
	for _, t := range []struct {
		table, what string
		paper       float64
		of          func(a *machine.Access) (uint64, bool)
	}{
		{"7", "load values", 1.44, loaded},
		{"8", "addresses of loads and stores", 1.43, addressed},
	} {
		begin := time.Now()
		n, err := extract(s, t.of)
		if err != nil {
			return nil, err
		}
		rows = append(rows, rates(t.table, t.what, 8*n, time.Since(begin), t.paper)...)
	}
	rows = append(rows, n.slices()...)
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.Table, b.Table) })
	return rows, nil
}

// counted is what sizes before compression follow from, and what slices took.
type counted struct {
	instructions, valued, dependences, paths uint64
	branches, loads, stores                  uint64 // instructions that are such
	graphs, slicing                          time.Duration
	slicesOf                                 int
	largest                                  int // the thread that executed most
	points                                   []point
}

func count(s *wpp.Snapshot) (*counted, error) {
	n := &counted{}
	most := 0
	for i := range s.Threads {
		points, err := pointsOf(s, i)
		if err != nil {
			return nil, err
		}
		if err := n.countInstructions(s, i, points); err != nil {
			return nil, err
		}
		n.paths += s.Threads[i].Grammar.Length(0)
		begin := time.Now()
		g, err := slice.Of(s, i)
		if err != nil {
			return nil, err
		}
		took := time.Since(begin)
		n.countDependences(g, points)
		if g.Len() > most {
			most, n.graphs, n.largest, n.points = g.Len(), took, i, points
			n.slice(g)
		}
	}
	return n, nil
}

func (n *counted) countInstructions(s *wpp.Snapshot, thread int, points []point) error {
	instructions, valued := uint64(0), uint64(0)
	at := 0
	for e, err := range values.Instructions(s, thread) {
		if err != nil {
			return err
		}
		for ; at < len(points) && e.Symbol >= points[at].symbols; at++ {
			points[at].instructions, points[at].valued = instructions, valued
		}
		instructions++
		if len(e.Written) > 0 {
			valued++
		}
		n.countHistories(e)
	}
	for ; at < len(points); at++ {
		points[at].instructions, points[at].valued = instructions, valued
	}
	n.instructions += instructions
	n.valued += valued
	return nil
}

// countHistories counts an instruction that may be mispredicted, or miss the cache.
func (n *counted) countHistories(e *wet.Executed) {
	if conditionally(e.Code.Op) {
		n.branches++
	}
	reads, writes := false, false
	for i := range e.Accesses {
		reads, writes = reads || !e.Accesses[i].Write, writes || e.Accesses[i].Write
	}
	if reads {
		n.loads++
	}
	if writes {
		n.stores++
	}
}

// conditionally reports whether an operation jumps or does not.
func conditionally(op machine.Op) bool {
	switch op {
	case machine.JumpIf, machine.JumpCX, machine.Loop, machine.LoopEqual, machine.LoopUneven:
		return true
	}
	return false
}

// histories makes table 4: the space that one bit takes for each execution. The bits themselves
// need hardware counters, and are not recorded. The paper has megabytes (of 2^20 bytes) of 646.9
// million statements in the mean.
func (n *counted) histories() []Row {
	const paper = 8 << 20 / 646.9e6
	row := func(what string, count uint64, megabytes float64) Row {
		return Row{"4", what + ": space of a bit for each, of an instruction, were they recorded",
			ratio(count, n.instructions), "bits", megabytes * paper}
	}
	return []Row{row("branches mispredicted", n.branches, 9.46), row("loads missed", n.loads, 11.74),
		row("stores missed", n.stores, 5.81)}
}

// construction makes table 5: how long it took until all was compressed, with the program's own
// run. Of a recording in windows that is not known.
func construction(s *wpp.Snapshot, n *counted) []Row {
	const minutes, millions = 36.27, 127.09
	took := s.Figures.Duration
	if took == 0 || s.Figures.Windows > 0 {
		return nil
	}
	return []Row{
		{"5", "instructions executed", float64(n.instructions), "", millions * 1e6},
		{"5", "recording, with the program's own run", took.Minutes(), "min", minutes},
		{"5", "of these, a million instructions", took.Seconds() * 1e6 /
			float64(max(n.instructions, 1)), "s", minutes * 60 / millions},
	}
}

func (n *counted) countDependences(g *slice.Graph, points []point) {
	dependences := uint64(0)
	at := 0
	for instance := range g.Len() {
		for ; at < len(points) && uint64(instance) >= points[at].instructions; at++ {
			points[at].dependences = dependences
		}
		for range g.DependsOn(instance) {
			dependences++
		}
	}
	for ; at < len(points); at++ {
		points[at].dependences = dependences
	}
	n.dependences += dependences
}

// slice takes slices, from instances all over a thread.
func (n *counted) slice(g *slice.Graph) {
	n.slicesOf = min(mostSlices, g.Len())
	begin := time.Now()
	for k := range n.slicesOf {
		g.Backward(slice.Data|slice.Control, (k+1)*g.Len()/n.slicesOf-1)
	}
	n.slicing = time.Since(begin)
}

// sizes makes tables 1 to 3, and figure 8.
func sizes(s *wpp.Snapshot, n *counted) ([]Row, error) {
	without := *s
	without.Sections = nil
	paths, err := written(&without)
	if err != nil {
		return nil, err
	}
	sections := map[wpp.SectionKind]uint64{}
	for _, kind := range []wpp.SectionKind{wet.CodeKind, wet.CommonKind, wet.HeadKind,
		wet.LogKind} {
		with := without
		for section := range s.SectionsOf(kind) {
			with.Sections = append(with.Sections, section)
		}
		all, err := written(&with)
		if err != nil {
			return nil, err
		}
		sections[kind] = all - paths
	}
	stamps, vals, edges := timestamp*n.instructions, value*n.valued, dependence*n.dependences
	stored := sections[wet.CommonKind] + sections[wet.HeadKind] + sections[wet.LogKind]
	file := paths + sections[wet.CodeKind] + stored
	rows := []Row{
		{"1", "instructions executed", float64(n.instructions), "", 646.90e6},
		{"1", "before compression", float64(stamps + vals + edges), "bytes", 0},
		{"1", "in the file", float64(file), "bytes", 0},
		{"1", "of these, code", float64(sections[wet.CodeKind]), "bytes", 0},
		{"1", "in the file for an instruction", 8 * ratio(file, n.instructions), "bits", 0},
		{"1", "ratio", ratio(stamps+vals+edges, file), "", 41.33},
		{"2", "timestamps before compression", float64(stamps), "bytes", 0},
		{"2", "timestamps, first tier: ratio of one a path", ratio(stamps, timestamp*n.paths), "",
			37.74},
		{"2", "timestamps in the file: paths and tables", float64(paths), "bytes", 0},
		{"2", "timestamps: ratio", ratio(stamps, paths), "", 230.99},
		{"2", "values before compression", float64(vals), "bytes", 0},
		{"2", "values in the file: what emulation mispredicts", float64(stored), "bytes", 0},
		{"2", "values: ratio", ratio(vals, stored), "", 11.51},
		{"3", "dependences", float64(n.dependences), "", 0},
		{"3", "edge labels before compression", float64(edges), "bytes", 0},
		{"3", "edge labels in the file: they follow from the rest", 0, "bytes", 0},
	}
	for _, part := range []struct {
		what         string
		before, file uint64
		paper        float64 // by the means of tables 2 and 3
	}{
		{"timestamps", stamps, paths, 25.74}, {"values", vals, stored, 18.05},
		{"edge labels", edges, 0, 56.21},
	} {
		rows = append(rows,
			Row{"figure 8", part.what + ": share before compression",
				100 * ratio(part.before, stamps+vals+edges), "%", part.paper},
			Row{"figure 8", part.what + ": share in the file, code left out",
				100 * ratio(part.file, paths+stored), "%", 0})
	}
	return rows, nil
}

// written is how many bytes the file of a snapshot has.
func written(s *wpp.Snapshot) (uint64, error) {
	var n counter
	err := format.Write(&n, s)
	return uint64(n), err
}

type counter uint64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

var _ io.Writer = (*counter)(nil)

func ratio(a, b uint64) float64 { return float64(a) / float64(max(b, 1)) }

// controlFlow makes table 6: the executed instructions are extracted from the paths, four bytes
// each, forward and backward.
func controlFlow(s *wpp.Snapshot) []Row {
	of := make([][]uint32, len(s.Symbols))
	longest := 0
	for i := range s.Symbols {
		if !s.Symbols[i].IsMark {
			for addr := range s.Instructions(uint32(i)) {
				of[i] = append(of[i], uint32(addr))
			}
		}
		longest = max(longest, len(of[i]))
	}
	buffer := make([]uint32, longest)
	var rows []Row
	for _, way := range []struct {
		name  string
		step  func(*stream.Cursor) (uint32, bool)
		paper float64
	}{{"forward", (*stream.Cursor).Next, 143.31}, {"backward", (*stream.Cursor).Previous, 149.84}} {
		n := uint64(0)
		begin := time.Now()
		for i := range s.Threads {
			c := stream.New(s.Threads[i].Grammar)
			if way.name == "backward" {
				c.Seek(s.Threads[i].Grammar.Length(0))
			}
			for sym, ok := way.step(c); ok; sym, ok = way.step(c) {
				n += uint64(copy(buffer, of[sym]))
			}
		}
		rows = append(rows, rates("6", "control flow "+way.name, 4*n, time.Since(begin),
			way.paper)...)
	}
	return rows
}

func rates(table, what string, bytes uint64, took time.Duration, paper float64) []Row {
	return []Row{
		{table, what, float64(bytes), "bytes", 0},
		{table, what, max(took, 1).Seconds(), "s", 0},
		speed(table, what, bytes, took, paper),
	}
}

func speed(table, what string, bytes uint64, took time.Duration, paper float64) Row {
	return Row{table, what, float64(bytes) / 1e6 / max(took, 1).Seconds(), "MB/s", paper}
}

func loaded(a *machine.Access) (v uint64, is bool) {
	if a.Write || a.Known == machine.Unknown || a.Size > 8 {
		return 0, false
	}
	for i, b := range a.Data() {
		v |= uint64(b) << (8 * i)
	}
	return v, true
}

func addressed(a *machine.Access) (uint64, bool) { return a.Addr, a.At != machine.Unknown }

// extract collects something of all accesses, by instruction, and returns how many there were.
func extract(s *wpp.Snapshot, of func(a *machine.Access) (uint64, bool)) (n uint64, err error) {
	lists := map[values.Instruction]*[]uint64{}
	for i := range s.Threads {
		for e, err := range values.Instructions(s, i) {
			if err != nil {
				return 0, err
			}
			if len(e.Accesses) == 0 {
				continue
			}
			at := values.Instruction{Routine: e.Routine, Addr: e.Addr}
			list := lists[at]
			if list == nil {
				list = new([]uint64)
				lists[at] = list
			}
			for j := range e.Accesses {
				if v, is := of(&e.Accesses[j]); is {
					*list = append(*list, v)
					n++
				}
			}
		}
	}
	return n, nil
}

// slices makes table 9.
func (n *counted) slices() []Row {
	return []Row{
		{"9", "making the graph of dependences, once", n.graphs.Seconds(), "s", 0},
		{"9", fmt.Sprintf("a slice, average of %d", n.slicesOf),
			n.slicing.Seconds() / float64(max(n.slicesOf, 1)), "s", 90.98},
	}
}

// CSV writes rows as comma-separated values, with a header.
func CSV(w io.Writer, rows []Row) error {
	out := csv.NewWriter(w)
	list := [][]string{{"table", "what", "value", "unit", "paper"}}
	for _, r := range rows {
		paper := ""
		if r.Paper > 0 {
			paper = short(r.Paper)
		}
		list = append(list, []string{r.Table, r.What, short(r.Value), r.Unit, paper})
	}
	if err := out.WriteAll(list); err != nil {
		return fmt.Errorf("write tables: %w", err)
	}
	return nil
}

// short writes a whole number whole, and another one with some digits.
func short(x float64) string {
	if x == math.Trunc(x) {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}
