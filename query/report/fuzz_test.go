package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/names"
	"wpptrace/query/profile"
	"wpptrace/query/querytest"
	"wpptrace/query/rules"
)

// FuzzQueries asks everything of a program with any grammars that wpp accepts, those that derive
// 2^64 paths among them.
func FuzzQueries(f *testing.F) {
	// figure 5
	f.Add([]byte{128, 128, 128, 255, 129, 130, 255, 0, 1, 255, 1, 2}, uint8(2), uint8(8))
	f.Add([]byte{0, 1, 14, 2, 2, 3, 1, 14, 2, 2, 3, 12, 4, 5, 254, 6, 7, 8, 7, 9, 10, 11, 13, 11},
		uint8(2), uint8(8))
	f.Add([]byte{128, 128, 255, 129, 129, 255, 130, 130, 255, 131, 131, 255, 2, 2, 3}, uint8(7),
		uint8(15))
	f.Add([]byte{}, uint8(1), uint8(0))
	f.Fuzz(func(t *testing.T, text []byte, minLength, more uint8) {
		s := querytest.InlinedCompressor()
		s.Threads = nil
		for i, bodies := range bytes.Split(text, []byte{254}) {
			g, err := wpp.NewGrammar(bodiesOf(bodies, len(s.Symbols)))
			if err != nil {
				return
			}
			s.Threads = append(s.Threads, wpp.Thread{TID: i, Grammar: g})
		}
		q := query.DefaultHotQuery()
		q.MinLength = 1 + int(minLength%8)
		q.MaxLength = q.MinLength + int(more%16)
		q.Top = 100
		report, err := query.Hot(s, q)
		if err != nil {
			t.Fatal(err)
		}
		last := uint64(0)
		for _, p := range report.Subpaths {
			if p.Cumulative < last || p.Cumulative > report.Total || p.Covered > p.Cumulative {
				t.Errorf("subpath %+v after %d of %d", p, last, report.Total)
			}
			last = p.Cumulative
		}
		check := func(err error) {
			if err != nil && !errors.Is(err, querytest.ErrFull) {
				t.Error(err)
			}
		}
		check(WriteHot(io.Discard, s, report))
		check(WriteHotJSON(io.Discard, s, report))
		check(WriteStatJSON(io.Discard, statOf(t, s)))
		check(WriteRoutines(io.Discard, s))
		check(WriteFigure8(io.Discard, s))
		check(askByName(s, q))
		for _, form := range textForms() {
			limit := querytest.LimitedWriter(1 << 18)
			check(Dump(&limit, s, form, Whole()))
		}
	})
}

// askByName asks all that takes names.
func askByName(s *wpp.Snapshot, q query.HotQuery) error {
	for _, pattern := range []string{"main ** main", "* main#1 *", "'longest_match...int)'"} {
		r, err := rules.Find(s, rules.FindQuery{Pattern: pattern, Gap: 5, First: 3, Top: 3})
		if err != nil {
			return err
		}
		if err := WriteFindJSON(io.Discard, s, r); err != nil {
			return err
		}
	}
	checked, err := rules.Check(s, []string{"main before sub_3000", "main and sub_3000 balanced " +
		"within 3", "every main followed by sub_3000", "never main+ sub_3000 .? main",
		"always (main sub_3000)*"})
	if err != nil {
		return err
	}
	if err := WriteRules(io.Discard, s, checked); err != nil {
		return err
	}
	order, err := rules.PathOrder(s, "main", "sub_3000")
	if err != nil {
		return err
	}
	if err := WriteOrder(io.Discard, s, order); err != nil {
		return err
	}
	flat, err := profile.Flat(s)
	if err != nil {
		return err
	}
	if err := errors.Join(WriteFlat(io.Discard, s, flat, 3),
		WriteFlatJSON(io.Discard, s, flat, 0)); err != nil {
		return err
	}
	callers, err := profile.CallersOf(s, "longest_match...int)")
	if err != nil {
		return err
	}
	if err := errors.Join(WriteCallers(io.Discard, s, callers, 3),
		WriteCallersJSON(io.Discard, s, callers, 0)); err != nil {
		return err
	}
	lines, err := profile.Lines(s, "main.c")
	if err != nil {
		return err
	}
	list, err := profile.Listings(s, "main")
	if err != nil {
		return err
	}
	if err := errors.Join(WriteLines(io.Discard, s, lines, Source{}),
		WriteLinesJSON(io.Discard, s, lines, Source{}),
		WriteDisasm(io.Discard, s, &list[0], textBytes(nil)),
		WriteDisasmJSON(io.Discard, s, "main", list, []Code{textBytes(nil)})); err != nil {
		return err
	}
	context, err := query.ContextOf(s, "main", 3)
	if err != nil {
		return err
	}
	if err := WriteContext(io.Discard, s, context, 5); err != nil {
		return err
	}
	for i := range s.Images {
		s.Images[i].BuildID = []byte{byte(i + 1)}
	}
	difference, err := query.Diff(s, s, query.DiffQuery{Hot: q})
	if err != nil {
		return err
	}
	if len(difference.Paths)+len(difference.Subpaths) > 0 {
		return fmt.Errorf("it differs from itself: %+v", difference)
	}
	for _, kind := range []query.HotKind{query.Maximal, query.Larus} {
		q.Kind = kind
		if _, err := query.Hot(s, q); err != nil {
			return err
		}
	}
	return nil
}

// bodiesOf reads rules that 255 separates: 128 + n is rule n + 1, what is less a terminal.
func bodiesOf(text []byte, symbols int) [][]uint32 {
	var bodies [][]uint32
	for _, rule := range bytes.Split(text, []byte{255}) {
		var body []uint32
		for _, b := range rule {
			if b < 128 {
				body = append(body, uint32(b)%uint32(symbols))
			} else {
				body = append(body, wpp.RuleSymbol(int(b)-127))
			}
		}
		bodies = append(bodies, body)
	}
	return bodies
}

// FuzzNames prints names as an ELF file may hold them.
func FuzzNames(f *testing.F) {
	f.Add("longest_match", 20)
	f.Add("std::vector<int, std::allocator<int> >::push_back(int&&)", 17)
	f.Add("\x1b[2J\tétat\xff\n", 3)
	f.Fuzz(func(t *testing.T, name string, width int) {
		for _, r := range names.Printable(name) {
			if !unicode.IsPrint(r) {
				t.Errorf("names.Printable(%q) holds %q", name, r)
			}
		}
		if got := bytes.ContainsAny([]byte(Field(name)), " \t\n"); got {
			t.Errorf("Field(%q) = %q is more than one field", name, Field(name))
		}
		for _, short := range []string{names.ShortenMiddle(names.Printable(name), width),
			names.ShortenLeft(names.Printable(name), width)} {
			if utf8.RuneCountInString(short) > max(width, len(names.Ellipsis)+2) {
				t.Errorf("%q is wider than %d columns", short, width)
			}
		}
	})
}

// A table of costs that is read can be used.
func FuzzReadCosts(f *testing.F) {
	f.Add("path,before,misses\na#0,b#0,3\na#0,,1\n")
	f.Add("path,cycles,misses\na...#0,3,4\n\"b\"#0,1,2\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := query.ReadCosts(strings.NewReader(text), "misses")
		if err != nil {
			return
		}
		s := querytest.Letters("abcabc")
		r, err := query.Hot(s, query.HotQuery{MinLength: 1, MaxLength: 3, Table: table})
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteHot(io.Discard, s, r); err != nil {
			t.Fatal(err)
		}
	})
}
