package plan_test

import (
	"slices"
	"testing"

	"wpptrace/loader/plan"
)

// Several jumps in a row ask for the value of one register, and each round of the loop makes a word
// that cannot carry it: another word, which can, is put there and tells them all.
func TestWordForItsValueAlone(t *testing.T) {
	p := planned(t, compile(t, `
		__attribute__((noinline)) unsigned run(const unsigned char *code, int turn) {
			static void *table[4] = {&&add, &&triple, &&add, &&triple};
			unsigned x = 1;
			if (turn == 1)
				table[2] = &&flip;
			for (;; code++) {
				if (*code == 9)
					return x;
				if (*code == 4)
					goto flip;
				if (*code > 3) {
					x += 1000;
					continue;
				}
				goto *table[*code];
			add:
				x += 1;
				continue;
			triple:
				x *= 3;
				continue;
			flip:
				x ^= 5;
			}
		}
		int main(int argc, char **argv) { return run((unsigned char *)argv[0], argc); }`, "-O2"), plan.Options{})
	r := routine(t, p, "run")
	carriers := 0
	for i := range p.Sites {
		s := &p.Sites[i]
		if s.Routine != r.ID || s.Case == nil {
			continue
		}
		carriers++
		if len(s.Case.Jumps) < 2 || slices.ContainsFunc(s.Case.Jumps, func(b int) bool { return r.Site(b) != nil }) {
			t.Errorf("the word at %x tells the jumps of blocks %v, each by its value alone?", s.Addr, s.Case.Jumps)
		}
	}
	if carriers != 2 {
		t.Errorf("%d words carry the value, not the loop's and that before it", carriers)
	}
}
