package query

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"wpptrace/compress/wpp"
	"wpptrace/query/internal/forest"
	"wpptrace/query/names"
)

// A CostTable says what executions of paths cost, as measured by any means: by path, and by path
// and what ran directly before it (Larus 1999, section 3.3, after Ammons, Ball and Larus: "the
// number of cache misses in b after it executes path a"). It does not change, and serves any
// snapshot.
type CostTable struct {
	Column string // what is counted: cycles, misses
	rows   []costRow
}

type costRow struct {
	path, before string // names; before "": whatever ran before
	cost         uint64
}

// mostCost is such that what a subpath costs is below 2^64.
const mostCost = math.MaxUint64 / mostLength

// ReadCosts reads a table in CSV with a header: a column "path", of names as WriteHotJSON spells
// them, ROUTINE#NUMBER; a column "before" of such names, if there is one; and columns of whole
// numbers, of which one is taken, or the only one where column is "". No row may come twice.
func ReadCosts(r io.Reader, column string) (*CostTable, error) {
	fail := func(err error) (*CostTable, error) { return nil, fmt.Errorf("read costs: %w", err) }
	lines := csv.NewReader(r)
	header, err := lines.Read()
	switch {
	case errors.Is(err, io.EOF):
		return fail(errors.New(`there is no header: the first line names the columns, ` +
			`as "path,before,cycles"`))
	case err != nil:
		return fail(err)
	}
	path, before := slices.Index(header, "path"), slices.Index(header, "before")
	if path < 0 {
		return fail(fmt.Errorf(`the header %q names no column "path"`,
			names.Printable(strings.Join(header, ","))))
	}
	at, err := costColumn(header, column)
	if err != nil {
		return fail(err)
	}
	t, known := &CostTable{Column: header[at]}, make(map[costRow]bool)
	for {
		fields, err := lines.Read()
		switch {
		case errors.Is(err, io.EOF):
			return t, nil
		case err != nil:
			return fail(fmt.Errorf("%w: put names with commas in double quotes", err))
		}
		row := costRow{path: fields[path]}
		if before >= 0 {
			row.before = fields[before]
		}
		line, _ := lines.FieldPos(at)
		if known[row] {
			return fail(fmt.Errorf("line %d: there is a row for %s before", line,
				names.Printable(strings.Trim(row.before+" "+row.path, " "))))
		}
		known[row] = true
		if row.cost, err = strconv.ParseUint(fields[at], 10, 64); err != nil {
			return fail(fmt.Errorf("line %d: %q is no whole number: multiply averages by a "+
				"thousand", line, names.Printable(fields[at])))
		}
		if row.cost > mostCost {
			return fail(fmt.Errorf("line %d: a cost of %d is more than %d: divide all by a "+
				"thousand", line, row.cost, uint64(mostCost)))
		}
		t.rows = append(t.rows, row)
	}
}

// costColumn finds the column of costs of that name, or the only one.
func costColumn(header []string, name string) (int, error) {
	var costs []string
	for _, h := range header {
		if h != "path" && h != "before" {
			costs = append(costs, h)
		}
	}
	if name == "" && len(costs) == 1 {
		name = costs[0]
	}
	if !slices.Contains(costs, name) {
		return 0, fmt.Errorf("no column of costs %q: name one of %s", names.Printable(name),
			names.Printable(strings.Join(costs, ", ")))
	}
	return slices.Index(header, name), nil
}

// Costs are what executions of symbols cost. A path that costs something else behind another path
// is a symbol of its own there, behind those of the snapshot.
type costs struct {
	of     []uint64
	isMark []bool
	pairs  []pair // of the symbols behind those of the snapshot
	apart  map[pair]uint32
	err    error
	varies []bool // by symbol of the snapshot: it is the path of a pair; nil: none is

	unpriced int // distinct paths that ran, of which the table does not know what they cost
	unused   int // rows of the table that name no path that ran
}

type pair struct{ before, path uint32 }

// costsOf costs an alphabet by the query's table, or else by its metric. Where rows of the table
// name the same path and differ, err says so.
func costsOf(s *wpp.Snapshot, q HotQuery) *costs {
	c := &costs{isMark: make([]bool, len(s.Symbols))}
	for sym := range s.Symbols {
		c.isMark[sym] = s.Symbols[sym].IsMark
	}
	if q.Table != nil {
		c.err = c.read(s, q.Table)
	} else {
		c.of = symbolCosts(s, q.Metric)
	}
	return c
}

// read takes time in proportion to the table and the alphabet.
func (c *costs) read(s *wpp.Snapshot, t *CostTable) error {
	c.of, c.apart = make([]uint64, len(s.Symbols)), make(map[pair]uint32)
	paths, known := newPathNames(s), make([]bool, len(s.Symbols))
	for _, row := range t.rows {
		if row.before == "" {
			for _, sym := range paths.of(row.path) {
				if known[sym] && c.of[sym] != row.cost {
					return fmt.Errorf("table of costs: %s is named by another row too, which "+
						"says that it costs %d: leave out one of them", names.Printable(row.path),
						c.of[sym])
				}
				c.of[sym], known[sym] = row.cost, true
			}
		}
	}
	costs := make(map[pair]uint64)
	for _, row := range t.rows {
		of, before := paths.of(row.path), paths.of(row.before)
		if len(of) == 0 || row.before != "" && len(before) == 0 {
			c.unused++
		}
		for _, path := range of {
			for _, b := range before {
				known[path] = true
				p := pair{b, path}
				if cost, ok := costs[p]; ok && cost != row.cost {
					return fmt.Errorf("table of costs: %s behind %s is named by another row too, "+
						"which says that it costs %d: leave out one of them",
						names.Printable(row.path), names.Printable(row.before), cost)
				}
				costs[p] = row.cost
				c.split(p, row.cost, len(s.Symbols))
			}
		}
	}
	for sym, isKnown := range known {
		if !isKnown && !c.isMark[sym] {
			c.unpriced++
		}
	}
	return nil
}

func (c *costs) split(p pair, cost uint64, symbols int) {
	if cost == c.of[p.path] {
		return
	}
	if c.varies == nil {
		c.varies = make([]bool, symbols)
	}
	c.varies[p.path] = true
	c.apart[p] = uint32(len(c.of))
	c.pairs, c.of, c.isMark = append(c.pairs, p), append(c.of, cost), append(c.isMark, false)
}

// in is the symbol for a path behind another.
func (c *costs) in(before, path uint32) uint32 {
	if sym, ok := c.apart[pair{before, path}]; ok {
		return sym
	}
	return path
}

// apartness says which symbols are told apart by what ran before them; nil: none are.
func (c *costs) apartness() *forest.Apart {
	if c.varies == nil {
		return nil
	}
	return &forest.Apart{Varies: c.varies, In: c.in}
}

// plain makes a sequence one of the snapshot's symbols, and returns what ran before it where it is
// only of executions behind that.
func (c *costs) plain(sequence []uint32) (before []uint32) {
	for i, sym := range sequence {
		if n := len(c.of) - len(c.pairs); int(sym) >= n {
			p := c.pairs[int(sym)-n]
			if sequence[i] = p.path; i == 0 {
				before = []uint32{p.before}
			}
		}
	}
	return before
}

// PathNames finds paths by their names.
type pathNames struct {
	snapshot *wpp.Snapshot
	names    *names.Names
	known    map[string][]uint32
}

func newPathNames(s *wpp.Snapshot) *pathNames {
	n := &pathNames{s, names.Of(s), make(map[string][]uint32)}
	for i := range s.Symbols {
		p := &s.Symbols[i]
		if p.IsMark {
			continue
		}
		number, full, short := "#"+strconv.FormatUint(p.Path,
			10), n.names.Routine(p.Routine), names.Plain(&s.Routines[p.Routine])
		n.known[full+number] = append(n.known[full+number], uint32(i))
		if short != full {
			n.known[short+number] = append(n.known[short+number], uint32(i))
		}
	}
	return n
}

// of returns the paths of a name as WritePath takes it. It takes time in proportion to the alphabet
// where the name is shortened, else constant time.
func (n *pathNames) of(name string) []uint32 {
	paths, ok := n.known[name]
	if !ok && strings.Contains(name, names.Ellipsis) {
		for i := range n.snapshot.Symbols {
			if sym := uint32(i); !n.snapshot.Symbols[i].IsMark && n.names.IsPath(sym, name) {
				paths = append(paths, sym)
			}
		}
		n.known[name] = paths
	}
	return paths
}
