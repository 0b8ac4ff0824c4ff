package values

import (
	"encoding/binary"
	"testing"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wet/memory"
	"wpptrace/loader/loads"
	"wpptrace/loader/plan"
)

// TestResult: what functions return that only read, where what decides it is known.
func TestResult(t *testing.T) {
	const word, worm, short, cut, objects = 0x1000, 0x2000, 0x3000, 0x4000, 0x5000
	m := &memory.Memory{}
	store := func(at uint64, b string) { m.Store(at, []byte(b), machine.Unconfirmed, false) }
	store(word, "word\x00")
	store(worm, "worm\x00")
	store(short, "wo\x00")
	store(cut, "wor") // of what is behind nothing is known
	object := func(at, text, n uint64) {
		store(at, string(binary.LittleEndian.AppendUint64(
			binary.LittleEndian.AppendUint64(nil, text), n)))
	}
	object(objects, word, 4)
	object(objects+16, short, 2)
	object(objects+32, worm, 4)
	r := &Recorder{plan: &loads.Plan{Base: &plan.Plan{}}}
	x := &content{recorder: r, memory: m}
	below := func(n int32) uint64 { return uint64(uint32(n)) }
	for _, c := range []struct {
		name   string
		args   []uint64
		want   uint64
		isNone bool
	}{
		{name: "strlen", args: []uint64{word}, want: 4},
		{name: "strlen@GLIBC_2.2.5", args: []uint64{short}, want: 2},
		{name: "strlen", args: []uint64{cut}, isNone: true},
		{name: "strlen", isNone: true},
		{name: "memcmp", args: []uint64{word, worm, 4}, isNone: true}, // each variant has its own
		{name: "memcmp", args: []uint64{word, worm, 3}, want: 0},
		{name: "memcmp", args: []uint64{worm, cut, 3}, want: 0},
		{name: "memcmp", args: []uint64{worm, cut, 4}, isNone: true},
		{name: "memcmp", args: []uint64{worm, word}, isNone: true},
		{name: "memcmp", args: []uint64{0, 0, 0}, want: 0},
		{name: "bcmp", args: []uint64{word, worm, 3}, want: 0},
		{name: "bcmp", args: []uint64{word, worm, 4}, isNone: true},
		{name: "strcmp", args: []uint64{word, word}, want: 0},
		{name: "strcmp", args: []uint64{short, word}, want: below(-'r')},
		{name: "strcmp", args: []uint64{word, worm}, want: below('d' - 'm')},
		{name: "strcmp", args: []uint64{word, cut}, isNone: true},
		{name: "strncmp", args: []uint64{word, cut, 3}, want: 0},
		{name: "strncmp", args: []uint64{short, short, 60}, want: 0},
		{name: "memchr", args: []uint64{word, 'r', 4}, want: word + 2},
		{name: "memchr", args: []uint64{word, 'x', 4}, want: 0},
		{name: "memchr", args: []uint64{cut, 'x', 4}, isNone: true},
		{name: loads.CompareStrings, args: []uint64{objects, objects + 32}, isNone: true},
		{name: loads.CompareStrings, args: []uint64{objects, objects + 16}, want: 2},
		{name: loads.CompareStrings, args: []uint64{objects + 16, objects}, want: below(-2)},
		{name: loads.CompareStrings, args: []uint64{objects, word}, isNone: true},
		{name: "read", args: []uint64{0, word, 4}, isNone: true},
	} {
		regs := machine.New()
		for i, v := range c.args {
			regs.SetGeneral([]int{machine.RDI, machine.RSI, machine.RDX}[i], v,
				machine.Unconfirmed)
		}
		if v, ok := x.result(c.name, regs); ok == c.isNone || ok && v != c.want {
			t.Errorf("%s of %x: %#x, %v, want %#x", c.name, c.args, v, ok, c.want)
		}
	}
}

// TestReadsBehindStores: what a hit has read is not what memory holds where something was stored.
func TestReadsBehindStores(t *testing.T) {
	m := &memory.Memory{}
	m.Keep()
	m.Begin()
	m.Store(0x1004, []byte{9, 9}, machine.Confirmed, false)
	m.Store(0x100f, []byte{9}, machine.Confirmed, false)
	x := &content{memory: m, reads: [2][]loads.Read{{{Addr: 0x1000, Size: 16}},
		{{Addr: 0x2000, Size: 8}, {Addr: 0x2008, Size: 8, Failed: true}}}}
	list := x.unstored(nil)
	want := []loads.Read{{Addr: 0x1000, Size: 4}, {Addr: 0x1006, Size: 9}, {Addr: 0x2000, Size: 8}}
	if len(list) != len(want) {
		t.Fatalf("%v", list)
	}
	for i := range want {
		if list[i] != want[i] {
			t.Errorf("%v, want %v", list[i], want[i])
		}
	}
}

// TestHash: hashes are those of std::hash<std::string>.
func TestHash(t *testing.T) {
	const seed = 0xc70f6907
	for text, want := range map[string]uint64{"": 0x553e93901e462a6e, "k7": 0xdd534a198b76e234,
		"12345678": 0x8c5b90a33a04dca5, "a longer string of some words": 0xcf3a542d4c251fc9} {
		if got := hashOf([]byte(text), seed); got != want {
			t.Errorf("the hash of %q is %#x, want %#x", text, got, want)
		}
	}
}
