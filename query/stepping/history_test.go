package stepping

import (
	"fmt"
	"testing"
)

// TestReadNext: what bytes hold whose value is not known is what is read of them next, unless
// something may have written them before that; and what was seen before, where nothing can have.
func TestReadNext(t *testing.T) {
	at := func(insn int32, kind touchKind, addr, data uint64) touch {
		return touch{addr: addr, data: data, insn: insn, kind: kind, size: 2}
	}
	const now = 10
	for name, x := range map[string]struct {
		list              []touch
		isFrame, isHidden bool
		want              string // two bytes
	}{
		"read":           {list: []touch{at(12, read, 100, 0x201)}, want: "1 2"},
		"read now":       {list: []touch{at(10, read, 100, 0x201)}, want: "1 2"},
		"half":           {list: []touch{at(12, read, 101, 0x302)}, want: "- 2"},
		"never":          {want: "- -"},
		"elsewhere":      {list: []touch{at(12, read, 102, 0x201)}, want: "- -"},
		"too late":       {list: []touch{at(now+ahead, read, 100, 0x201)}, want: "- -"},
		"written first":  {list: []touch{at(11, wrote, 100, 0x605), at(12, read, 100, 0x605)}, want: "- -"},
		"half written":   {list: []touch{at(11, overwrote, 99, 0), at(12, read, 100, 0x605)}, want: "- 6"},
		"external first": {list: []touch{at(11, changed, 0, 0), at(12, read, 100, 0x201)}, want: "- -"},
		"external before": {list: []touch{at(8, read, 100, 0x201), at(9, changed, 0, 0),
			at(12, read, 100, 0x304)}, want: "4 3"},
		"the same before": {list: []touch{at(8, read, 100, 0x201), at(9, changed, 0, 0),
			at(11, changed, 0, 0), at(12, read, 100, 0x301)}, want: "1 -"},
		"another activation": {list: []touch{at(2, wrote, 100, 0x201), at(9, changed, 0, 0),
			at(11, changed, 0, 0), at(12, read, 100, 0x201)}, isFrame: true, want: "- -"},
		"returned": {list: []touch{at(11, returned, 200, 0), at(12, read, 100, 0x201)},
			isFrame: true, want: "- -"},
		"a callee returned": {list: []touch{at(11, returned, 90, 0), at(12, read, 100, 0x201)},
			isFrame: true, want: "1 2"},
		"of no frame": {list: []touch{at(11, returned, 200, 0), at(12, read, 100, 0x201)},
			want: "1 2"},
		"lost": {list: []touch{at(11, lost, 0, 0), at(12, read, 100, 0x201)}, want: "- -"},
		"hidden, written before": {list: []touch{at(7, wrote, 100, 0x201), at(9, changed, 0, 0)},
			isFrame: true, isHidden: true, want: "1 2"},
		"hidden, another activation": {list: []touch{at(2, wrote, 100, 0x201),
			at(9, changed, 0, 0)}, isFrame: true, isHidden: true, want: "- -"},
		"hidden, overwritten": {list: []touch{at(7, wrote, 100, 0x201), at(8, overwrote, 100, 0)},
			isFrame: true, isHidden: true, want: "- -"},
		"hidden, lost": {list: []touch{at(7, wrote, 100, 0x201), at(8, lost, 0, 0)},
			isFrame: true, isHidden: true, want: "- -"},
		"hidden, read later": {list: []touch{at(8, overwrote, 100, 0), at(11, changed, 0, 0),
			at(12, read, 100, 0x201)}, isFrame: true, isHidden: true, want: "1 2"},
		"hidden, and not what it was": {list: []touch{at(7, wrote, 100, 0x201),
			at(11, changed, 0, 0), at(12, read, 100, 0x301)}, isFrame: true, isHidden: true,
			want: "1 -"},
		"hidden, written next": {list: []touch{at(7, wrote, 100, 0x201), at(9, changed, 0, 0),
			at(12, wrote, 100, 0x605)}, isFrame: true, isHidden: true, want: "1 2"},
	} {
		var to [2]byte
		s := seeker{at: now, began: 5, isFrame: x.isFrame, isHidden: x.isHidden, addr: 100,
			to: to[:], want: 3}
		h := &history{list: x.list}
		found := h.seek(&s)
		got := ""
		for i, b := range to {
			if i > 0 {
				got += " "
			}
			if found>>i&1 == 0 {
				got += "-"
			} else {
				got += fmt.Sprint(b)
			}
		}
		if got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
}
