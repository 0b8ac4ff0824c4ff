package image

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// chains is a program with calls that are inlined in each other, in code with loops and branches,
// in C++ and from several places.
const chains = `#include <cstdio>
#include <cstdlib>

namespace chain {
inline __attribute__((always_inline)) int third(int x) {
	return x % 7 ? x * 3 + 1 : std::abs(x - 5); }
inline __attribute__((always_inline)) int second(int x)
{
	int s = 0;
	for (int i = 0; i < x; i++)
		s += third(i) ^ third(x - i);
	return s;
}
template <typename T> struct Box {
	T value;
	inline __attribute__((always_inline)) T open(int n) const {
		return n > 3 ? second(n) + value : value; }
};
}

__attribute__((noinline)) int first(int n)
{
	chain::Box<int> box{n};
	return box.open(n) - chain::second(n + 1);
}

static int recurse(int n) { return n < 2 ? n : recurse(n - 1) + recurse(n - 2); }

template <typename T> struct Stack {
	T *items = nullptr;
	int used = 0, room = 0;
	~Stack() { std::free(items); }
	void grow() { items = static_cast<T *>(std::realloc(items,
		(room = 2 * room + 4) * sizeof(T))); }
	void push(T item)
	{
		if (used == room)
			grow();
		items[used++] = item;
	}
	T *begin() { return items; }
	T *end() { return items + used; }
};

__attribute__((noinline)) long stacks(int n)
{
	Stack<long> v;
	for (int i = 0; i < n; i++) {
		auto lambda = [&](int k) { return k % 40 + (long)n; };
		v.push(lambda(chain::third(i)));
	}
	long sum = 0;
	for (auto &s : v)
		sum += s;
	return sum;
}

int main(int argc, char **) { return std::printf("%d %d %ld\n", first(argc), recurse(argc + 10),
	stacks(argc * 10)) < 0; }
`

// inlinedAs is what addr2line -i -f says of each address: a line for each routine, the innermost
// first, and its place.
func inlinedAs(t *testing.T, path string, addrs []uint64) [][]string {
	t.Helper()
	var input strings.Builder
	for _, addr := range addrs {
		fmt.Fprintf(&input, "%x\n", addr)
	}
	var stacks [][]string
	lines := strings.Split(strings.TrimSpace(run(t, input.String(), "addr2line", "-a", "-i", "-f",
		"-e", path)), "\n")
	for i := 0; i < len(lines); {
		i++ // the address
		var stack []string
		for ; i < len(lines) && !strings.HasPrefix(lines[i], "0x"); i += 2 {
			place, _, _ := strings.Cut(lines[i+1], " (discriminator")
			stack = append(stack, Demangle(lines[i])+" "+place)
		}
		stacks = append(stacks, stack)
	}
	return stacks
}

// inlinedHere is the same of ours, of the routine at the end no name.
func inlinedHere(l *Lines, addr uint64) (stack []string) {
	file, line, _ := l.At(addr)
	for _, c := range l.Inlined(addr) {
		stack = append(stack, c.Routine+" "+file+":"+strconv.Itoa(line))
		file, line = c.File, c.Line
	}
	return append(stack, file+":"+strconv.Itoa(line))
}

// TestInlinedEqualsAddr2line compares the calls at every byte of a program's code with addr2line's.
// At up to three places in each that calls the innermost routine by the name of the outermost
// (llvm-symbolizer does not).
func TestInlinedEqualsAddr2line(t *testing.T) {
	for _, flags := range []string{"-g -O2", "-g -O3 -gdwarf-4", "-g -O1 -gdwarf-3",
		"-g -O2 -gz -no-pie", "-g -O2 -ffunction-sections -Wl,--gc-sections"} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			path := compile(t, "chains.cc", chains, strings.Fields(flags)...)
			im := mustOpen(t, path)
			lines, err := im.Lines()
			if err != nil {
				t.Fatal(err)
			}
			addrs, deepest, misnamed := code(im), 0, 0
			for i, want := range inlinedAs(t, path, addrs) {
				got := inlinedHere(lines, addrs[i])
				outermost, place := nameAndPlace(want[len(want)-1])
				if place == "??:0" || place == "??:?" {
					continue
				}
				want[len(want)-1] = place
				if name, place := nameAndPlace(want[0]); len(want) > 1 && name == outermost &&
					got[0] != want[0] {
					misnamed++
					_, got[0] = nameAndPlace(got[0])
					want[0] = place
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%#x: got %q, addr2line has %q", addrs[i], got, want)
				}
				deepest = max(deepest, len(got))
			}
			if deepest < 4 || misnamed > 3 || lines.Trouble() != nil {
				t.Errorf("%d deep, %d with other names, %v", deepest, misnamed, lines.Trouble())
			}
		})
	}
}

func nameAndPlace(line string) (name, place string) {
	i := strings.LastIndexByte(line, ' ')
	return line[:max(i, 0)], line[i+1:]
}

// code returns the addresses of all that frames describe.
func code(im *Image) (addrs []uint64) {
	for _, r := range im.Ranges {
		for addr := r.Lo; addr < r.Hi; addr++ {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// inlinedDWARF is smallDWARF of a routine f whose bytes from the second on are of g, which it calls
// in line 5, and those from the third to the fifth of h, which g calls in line 3.
func inlinedDWARF() (abbrev, info, line []byte) {
	const (
		name, ofString       = 0x03, 0x08
		lowPC, ofAddress     = 0x11, 0x01
		highPC, ofData8      = 0x12, 0x07
		origin, ofReference  = 0x31, 0x13
		callFile, ofByte     = 0x58, 0x0b
		callLine, lineTable  = 0x59, 0x10
		subprogram, callHere = 0x2e, 0x1d
	)
	_, _, line = smallDWARF()
	abbrev = []byte{
		1, 0x11, 1, lineTable, 0x17, lowPC, ofAddress, highPC, ofData8, 0, 0,
		2, subprogram, 0, name, ofString, 0, 0,
		3, subprogram, 1, name, ofString, lowPC, ofAddress, highPC, ofData8, 0, 0,
		4, callHere, 1, origin, ofReference, lowPC, ofAddress, highPC, ofData8, callFile, ofByte,
		callLine, ofByte, 0, 0,
		0,
	}
	le := binary.LittleEndian
	from := func(lo,
		n uint64) []byte {
		return le.AppendUint64(le.AppendUint64(nil, smallCode+lo), n)
	}
	info = []byte{0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1, 0, 0, 0, 0}
	info = append(info, from(0, 16)...)
	g := len(info)
	info = append(info, 2, 'g', 0)
	h := len(info)
	info = append(info, 2, 'h', 0, 3, 'f', 0)
	info = append(append(info, from(0, 16)...), 4, byte(g), 0, 0, 0)
	info = append(append(info, from(1, 7)...), 1, 5, 4, byte(h), 0, 0, 0)
	info = append(append(info, from(2, 3)...), 1, 3, 0, 0, 0, 0)
	le.PutUint32(info, uint32(len(info)-4))
	return abbrev, info, line
}

func TestSmallInlined(t *testing.T) {
	lines := smallLines(t, lineELF(inlinedDWARF()))
	for offset, want := range [][]string{{"f.c:7"}, {"g f.c:7", "f.c:5"},
		{"h f.c:7", "g f.c:3", "f.c:5"}, {"h f.c:7", "g f.c:3", "f.c:5"}, {"h f.c:9", "g f.c:3",
			"f.c:5"}, {"g f.c:9", "f.c:5"}} {
		if got := inlinedHere(lines, smallCode+uint64(offset)); !slices.Equal(got, want) {
			t.Errorf("byte %d: %q, want %q", offset, got, want)
		}
	}
	if err := lines.Trouble(); err != nil {
		t.Error(err)
	}
}

// TestRoutineWithinACall: a routine that is defined within what is inlined elsewhere is not of
// those calls, nor is what is inlined in it.
func TestRoutineWithinACall(t *testing.T) {
	abbrev, info, line := inlinedDWARF()
	le := binary.LittleEndian
	sixth := le.AppendUint64(le.AppendUint64(nil, smallCode+5), 1)
	callOfH := slices.Clone(info[len(info)-4-23 : len(info)-4])
	copy(callOfH[5:], sixth)
	callOfH[22] = 8 // the line
	k := slices.Concat([]byte{3, 'k', 0}, sixth, callOfH, []byte{0, 0})
	info = slices.Insert(info, len(info)-3, k...) // behind what h has in it
	le.PutUint32(info, uint32(len(info)-4))
	lines := smallLines(t, lineELF(abbrev, info, line))
	for offset, want := range map[uint64][]string{4: {"h f.c:9", "g f.c:3", "f.c:5"},
		5: {"h f.c:9", "f.c:8"}} {
		if got := inlinedHere(lines, smallCode+offset); !slices.Equal(got, want) ||
			lines.Trouble() != nil {
			t.Errorf("byte %d: %q, want %q; %v", offset, got, want, lines.Trouble())
		}
	}
}

// TestInlinedCorrupt changes each byte: what is returned is bounded, and what is wrong has the
// file's name.
func TestInlinedCorrupt(t *testing.T) {
	abbrev, info, line := inlinedDWARF()
	troubles := 0
	for at := range len(abbrev) + len(info) {
		for _, value := range []byte{0, 1, 4, 0x7f, 0xff} {
			data := append(slices.Clone(abbrev), info...)
			data[at] = value
			if err := checkInlined(t, data[:len(abbrev)], data[len(abbrev):], line); err != nil {
				troubles++
			}
		}
	}
	if troubles < 10 {
		t.Errorf("%d errors", troubles)
	}
}

func checkInlined(t *testing.T, abbrev, info, line []byte) error {
	t.Helper()
	file := lineELF(abbrev, info, line)
	im, err := Open(bytes.NewReader(file), int64(len(file)), "bad")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := im.Lines()
	if err != nil {
		return nil // see FuzzLines
	}
	for addr := uint64(smallCode); addr < smallCode+64; addr++ {
		if n := len(lines.Inlined(addr)); n > maxCallDepth {
			t.Errorf("%d calls", n)
		}
	}
	err = lines.Trouble()
	if err != nil && !strings.HasPrefix(err.Error(), "read inlined calls of bad: ") {
		t.Error(err)
	}
	return err
}

func FuzzInlined(f *testing.F) {
	abbrev, info, line := inlinedDWARF()
	f.Add(abbrev, info, line)
	f.Fuzz(func(t *testing.T, abbrev, info, line []byte) { checkInlined(t, abbrev, info, line) })
}

// TestInlinedIsBounded: what a hostile file would have cost beyond measure ends, with an error.
func TestInlinedIsBounded(t *testing.T) {
	for _, c := range []struct {
		limit func(d *debugData)
		want  string
	}{
		{func(d *debugData) { d.left.names = 0 }, "more than 8192 MB of names"},
		{func(d *debugData) { d.left.ranges = 1 }, "more than 67108864 ranges"},
	} {
		lines := smallLines(t, lineELF(inlinedDWARF()))
		c.limit(lines.inlined.debug)
		if got := lines.Inlined(smallCode + 3); got != nil {
			t.Errorf("%s: %v", c.want, got)
		}
		if err := lines.Trouble(); err == nil ||
			err.Error() != "read inlined calls of small: "+c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	abbrev, info, line := inlinedDWARF()
	// the call of h; then each entry's list of others ends
	deeper := info[len(info)-4-23 : len(info)-4]
	info = append(slices.Concat(info[:len(info)-4], bytes.Repeat(deeper, 2*maxCallDepth)),
		make([]byte, 4+2*maxCallDepth)...)
	binary.LittleEndian.PutUint32(info, uint32(len(info)-4))
	lines := smallLines(t, lineELF(abbrev, info, line))
	if n := len(lines.Inlined(smallCode + 3)); n != maxCallDepth || lines.Trouble() != nil {
		t.Errorf("%d calls in each other, %v", n, lines.Trouble())
	}
}

// TestAbbreviationsOverlap: units could name a table at each offset of one, of which each is kept
// as long as the rest.
func TestAbbreviationsOverlap(t *testing.T) {
	_, _, line := smallDWARF()
	const units = 50
	attributes := func(n int) []byte {
		return append(bytes.Repeat([]byte{1}, 3+units+2*n), 0, 0, 0)
	}
	var info []byte
	for at := range units {
		info = append(info, 8, 0, 0, 0, 4, 0, byte(2*at), 0, 0, 0, 8, 0)
	}
	for n, want := range map[int]string{400: "tables of abbreviations overlap",
		1100: "an abbreviation has more than 1000 attributes"} {
		file := lineELF(attributes(n), info, line)
		im, err := Open(bytes.NewReader(file), int64(len(file)), "it")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := im.Lines(); err == nil || err.Error() != "read lines of it: "+want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestClipNames: names end where no compiler's does not, so that a long one that entries share is
// not copied for each.
func TestClipNames(t *testing.T) {
	long, longest := strings.Repeat("x", maxName-1), strings.Repeat("y", 3*maxName)
	names := []byte("a\x00" + long + "\x00bc\x00" + longest + "\x00d\x00")
	clipNames(names)
	for i, name := range strings.Split(string(names), "\x00") {
		if want := []int{1, maxName - 1, 2, maxName - 1, maxName - 1, maxName - 1, 0, 1,
			0}; i >= len(want) || len(name) != want[i] {
			t.Errorf("name %d has %d bytes, want %v", i, len(name), want)
		}
	}
}

// Code belongs to what is deepest, and behind its end to what is around it, also where ranges do
// not nest.
func TestOwners(t *testing.T) {
	for _, c := range []struct {
		name string
		list []owned
		want string // of the addresses from 0 to 9
	}{
		{"none", nil, ".........."},
		{"nested", []owned{{1, 9, 0, 0}, {3, 7, 1, 1}, {4, 6, 2, 2}}, ".00122100."},
		{"from the same address", []owned{{2, 4, 1, 1}, {2, 8, 0, 0}}, "..110000.."},
		{"to the same address", []owned{{2, 8, 0, 0}, {4, 8, 1, 1}}, "..001111.."},
		{"one behind the other", []owned{{1, 3, 0, 0}, {3, 5, 1, 0}, {6, 7, 0, 0}}, ".0011.0..."},
		{"beyond what is around", []owned{{1, 4, 0, 0}, {3, 7, 1, 1}}, ".001111..."},
		{"over two parts", []owned{{1, 4, 0, 0}, {4, 8, 0, 0}, {3, 6, 1, 1}}, ".0011100.."},
		{"in the middle of the same depth", []owned{{1, 8, 0, 0}, {3, 5, 1, 0}}, ".0011000.."},
	} {
		rows := flatten(c.list)
		got := ""
		for addr := range uint64(10) {
			if owner := ownerOf(rows, addr); owner == nowhere {
				got += "."
			} else {
				got += strconv.Itoa(owner)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// What has been read of a unit stays when memory is given back, and the rest is read again; what
// may be read in all stays as it was.
func TestRelease(t *testing.T) {
	lines := smallLines(t, lineELF(inlinedDWARF()))
	lines.Release()
	want := []string{"h f.c:7", "g f.c:3", "f.c:5"}
	for range 2 {
		if got := inlinedHere(lines, smallCode+2); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if lines.inlined.debug == nil || lines.inlined.debug.left != lines.inlined.left {
			t.Error("it was not read again, or may be read anew without end")
		}
	}
	lines.Release()
	if got := inlinedHere(lines, smallCode+2); !slices.Equal(got, want) ||
		lines.inlined.debug != nil {
		t.Errorf("%q, want %q, without reading", got, want)
	}
}

func ExampleLines_Inlined() {
	file := lineELF(inlinedDWARF())
	im, err := Open(bytes.NewReader(file), int64(len(file)), "program")
	if err != nil {
		fmt.Println(err)
		return
	}
	lines, err := im.Lines()
	if err != nil {
		fmt.Println(err)
		return
	}
	file1, line, _ := lines.At(smallCode + 2)
	for _, c := range lines.Inlined(smallCode + 2) {
		fmt.Printf("%s:%d in %s, inlined in %s:%d\n", file1, line, c.Routine, c.File, c.Line)
		file1, line = c.File, c.Line
	}
	fmt.Println(lines.Trouble())
	// Output:
	// f.c:7 in h, inlined in f.c:3
	// f.c:3 in g, inlined in f.c:5
	// <nil>
}
