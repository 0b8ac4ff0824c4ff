package processor_test

import (
	"testing"

	"wpptrace/kernel-tests/processor"
)

// A case that does not end, or ends the child, keeps no other one from being run.
func TestCasesThatDoNotEnd(t *testing.T) {
	p, err := processor.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	add := []byte{0x48, 0x01, 0xd8} // add %rbx,%rax
	codes := [][]byte{add, {0xeb, 0xfe}, add, {0x0f, 0x05}, add}
	for range 2 {
		var cases []*processor.Case
		for _, code := range codes {
			c := &processor.Case{Code: code}
			c.Before.Registers[0], c.Before.Registers[3], c.Before.MXCSR = 2, 3, 0x1f80
			cases = append(cases, c)
		}
		if err := p.Run(cases); err != nil {
			t.Fatal(err)
		}
		for i, c := range cases {
			if ends := i%2 == 0; c.Endless == ends {
				t.Errorf("case %d, % x: endless %v", i, c.Code, c.Endless)
			} else if ends && c.After.Registers[0] != 5 {
				t.Errorf("case %d: %d, not 5", i, c.After.Registers[0])
			}
		}
	}
}
