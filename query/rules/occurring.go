package rules

import (
	"errors"
	"fmt"

	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/names"
)

// Occurring returns the symbols of the paths that a sequence names and that ran as a part of it, in
// rising order: not what * and ** stand for, which may be any paths. The sequence is that of a
// FindQuery with this gap. One name alone stands for all of its paths, also in a path profile.
// Cost: that of Find, for each path that is named.
func Occurring(s *wpp.Snapshot, text string, gap int) (symbols []uint32, err error) {
	defer wpp.Recover(&err)
	q := FindQuery{Pattern: text, Gap: gap, First: 1}
	if err := q.Validate(); err != nil {
		return nil, err
	}
	a := newPathNames(s)
	met := make([]bool, len(s.Symbols))
	p, err := sequencePattern(a, text, gap)
	if err == nil {
		err = occurring(a, p, met)
	}
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", names.Printable(text), err)
	}
	for sym, is := range met {
		if is {
			symbols = append(symbols, uint32(sym))
		}
	}
	return symbols, nil
}

// occurring sets which symbols run where a sequence names them.
func occurring(a *pathNames, p *pattern, met []bool) error {
	var named []*pattern
	for _, item := range p.of {
		if item.op == onePath && item.atom != anyPath {
			named = append(named, item)
		}
	}
	switch {
	case len(named) == 0:
		return errors.New("it names no path")
	case len(p.of) == 1:
		for sym, mask := range a.mask {
			met[sym] = mask != 0
		}
		return nil
	}
	threads, err := query.Threads(a.snapshot, nil)
	if err != nil {
		return err
	}
	one, err := a.addNone()
	if err != nil {
		return err
	}
	for _, item := range named {
		name := item.atom
		item.atom = one
		for sym := range a.mask {
			if met[sym] || a.mask[sym]>>name&1 == 0 {
				continue
			}
			a.mask[sym] |= 1 << one
			if met[sym], err = occurs(a, p, threads); err != nil {
				return err
			}
			a.mask[sym] &^= 1 << one
		}
		item.atom = name
	}
	return nil
}

// addNone adds a name that stands for nothing.
func (a *pathNames) addNone() (int, error) {
	if len(a.names) == mostNames {
		return 0, fmt.Errorf("more than %d names", mostNames-1)
	}
	a.names = append(a.names, "")
	return len(a.names) - 1, nil
}

// occurs reports whether a sequence ran in any thread.
func occurs(a *pathNames, p *pattern, threads []*wpp.Thread) (bool, error) {
	finder, err := newFinder(a, p)
	if err != nil {
		return false, err
	}
	for _, t := range threads {
		if count, _, err := finder.find(t, 0, 0); err != nil || count > 0 {
			return count > 0, err
		}
	}
	return false, nil
}
