package compact

import (
	"fmt"
	"slices"

	"wpptrace/compress/wpp"
)

// Snapshot makes the grammars of a snapshot smaller, each as Grammar does. Where that changes one,
// it leaves out the sections of other packages that refer to rules, and returns their kinds, each
// once. The other ones stay. After an error the snapshot is of no use.
func Snapshot(s *wpp.Snapshot) (leftOut []wpp.SectionKind, err error) {
	changed := false
	for i := range s.Threads {
		t := &s.Threads[i]
		before := t.Grammar
		if t.Grammar, err = Grammar(before); err != nil {
			return nil, fmt.Errorf("thread %d: %w", t.TID, err)
		}
		changed = changed || t.Grammar != before
	}
	if !changed {
		return nil, nil
	}
	s.Sections = slices.DeleteFunc(slices.Clone(s.Sections), func(x *wpp.Section) bool {
		ofRules := x.Kind().IsOfRules()
		if ofRules && !slices.Contains(leftOut, x.Kind()) {
			leftOut = append(leftOut, x.Kind())
		}
		return ofRules
	})
	return leftOut, nil
}
