package shape

import (
	"encoding/hex"
	"strings"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/internal/testenv"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
)

// TestOf finds the loop and the call of a routine in its file, and refuses another graph by name.
func TestOf(t *testing.T) {
	path := testenv.CompileC(t, `
		static volatile int sink;
		__attribute__((noinline)) static void work(int i) { sink = i; }
		__attribute__((noinline)) static void spin(int n) {
			work(n);
			for (int i = 0; i < n; i++)
				if (sink != i)
					sink = n;
		}
		int main(int argc, char **argv) { spin(argc); return 0; }`, "-O1", "-Wl,--build-id")
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	program, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := hex.DecodeString(im.BuildID)
	s := &wpp.Snapshot{Images: []wpp.Image{{Name: path, BuildID: id}}}
	spin := -1
	for _, r := range program.Routines {
		if r.Name == "spin" {
			spin = len(s.Routines)
		}
		if r.Name != "spin" && r.Name != "work" {
			continue
		}
		x := wpp.Routine{Name: r.Name, Entry: r.Addr}
		for _, b := range r.Blocks {
			block := wpp.Block{Addr: b.Lo}
			for _, q := range b.Insns {
				block.Lengths = append(block.Lengths, byte(q.Len))
			}
			x.Blocks = append(x.Blocks, block)
		}
		s.Routines = append(s.Routines, x)
	}
	shapes, err := Of(s, nil)
	if err != nil || len(shapes.Of) != 2 || len(shapes.LeftOut) > 0 {
		t.Fatalf("%+v, %v", shapes, err)
	}
	if x := shapes.Of[spin]; len(x.Loops) != 1 || len(x.Calls) != 1 || len(x.Predicates) == 0 ||
		x.Calls[0].Routine != 1-spin {
		t.Errorf("%+v", x)
	}
	s.Routines[spin].Blocks[1].Addr++
	shapes, err = Of(s, []string{path})
	if err != nil || len(shapes.Of) != 1 ||
		shapes.LeftOut["it was recorded with another graph, as spin"] != 1 {
		t.Errorf("%+v, %v", shapes, err)
	}
	if _, err := Of(s, []string{"/bin/true"}); err == nil ||
		!strings.Contains(err.Error(), "/bin/true has build id") {
		t.Error(err)
	}
}
