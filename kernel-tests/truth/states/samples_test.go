package states_test

import (
	"testing"

	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/truth/states"
)

// TestSamplesAreCoherent: what an instruction reads is what the last one wrote there, or read, as
// long as no other code has run between them; and registers that other code has not changed stay.
func TestSamplesAreCoherent(t *testing.T) {
	for _, name := range states.Names() {
		t.Run(name, func(t *testing.T) {
			s, err := states.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			thread := s.Trace.Threads[0]
			if len(thread.Values) != len(thread.Insns) {
				t.Fatalf("%d steps, %d instructions", len(thread.Values), len(thread.Insns))
			}
			memory := map[uint64]byte{}
			reads := 0
			for i := range thread.Values {
				step := &thread.Values[i]
				if step.PC != thread.Insns[step.Index] {
					t.Fatalf("step %d is at %x, its instruction at %x", i, step.PC,
						thread.Insns[step.Index])
				}
				if len(step.Before) > 0 {
					clear(memory)
				}
				for _, m := range step.Reads {
					for k, b := range m.Bytes {
						if was, ok := memory[m.Addr+uint64(k)]; ok && was != b {
							t.Fatalf("step %d at %x reads %x of %x where there was %x", i, step.PC, b,
								m.Addr+uint64(k), was)
						}
					}
					keep(memory, m)
					reads++
				}
				for _, m := range step.Writes {
					keep(memory, m)
				}
			}
			if reads < len(thread.Values)/20 {
				t.Errorf("%d reads in %d steps", reads, len(thread.Values))
			}
		})
	}
}

func keep(memory map[uint64]byte, m truth.MemoryValue) {
	for k, b := range m.Bytes {
		memory[m.Addr+uint64(k)] = b
	}
}
