package recovery

import (
	"bytes"
	"encoding/binary"
	"testing"

	"wpptrace/loader/image"
)

// A file that names more labels, and tables, than any program does costs no more than that: all its
// routines are taken for entered by pointers then.
func TestTooManyLabels(t *testing.T) {
	const lo, data, nop, ret = 0x1000, 0x1000000, 0x90, 0xc3
	for names, want := range map[int]bool{10: false, 3000: true} {
		var code []byte
		lea := func(to uint64) { // rax
			code = append(code, 0x48, 0x8d, 0x05)
			code = binary.LittleEndian.AppendUint32(code, uint32(to-(lo+uint64(len(code))+4)))
		}
		for i := range uint64(names) {
			lea(lo + 1 + i)
			lea(data + 4*i)
		}
		code = append(code, ret)
		other := lo + uint64(len(code))
		code = append(code, nop, ret)
		row := func(pc uint64) image.Row {
			return image.Row{PC: pc, CFA: image.CFA{Reg: 7, Off: 8}}
		}
		p, err := Recover(&image.Image{
			Sections: []image.Section{{Name: ".text", Addr: lo, Data: code, Exec: true},
				{Name: ".rodata", Addr: data, Data: make([]byte, 4*names+4)}},
			Ranges: []image.Range{image.NewRange(lo, other, row(lo)),
				image.NewRange(other, other+2, row(other))},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.AddressTaken(other); got != want {
			t.Errorf("%d labels and tables: the address of what nobody names is taken: %v, want %v",
				names, got, want)
		}
	}
}

// A routine with more places that another names than any has labels is left out, and costs no more
// than that.
func TestTooManyPlacesToJumpTo(t *testing.T) {
	const lo, nop, ret = 0x1000, 0x90, 0xc3
	for names, want := range map[int]string{10: "", 100_000: "too many places in its middle that " +
		"other routines may jump to"} {
		other := lo + uint64(7*names+1)
		var code []byte
		for i := range uint64(names) {
			code = append(code, 0x48, 0x8d, 0x05) // lea, rax
			code = binary.LittleEndian.AppendUint32(code,
				uint32(other+1+i-(lo+uint64(len(code))+4)))
		}
		code = append(code, ret)
		code = append(code, bytes.Repeat([]byte{nop}, names+1)...)
		code = append(code, ret)
		end := lo + uint64(len(code))
		row := func(pc uint64) image.Row {
			return image.Row{PC: pc, CFA: image.CFA{Reg: 7, Off: 8}}
		}
		p, err := Recover(&image.Image{
			Sections: []image.Section{{Name: ".text", Addr: lo, Data: code, Exec: true}},
			Ranges: []image.Range{image.NewRange(lo, other, row(lo)),
				image.NewRange(other, end, row(other))},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.At(other).LeftOut; got != want {
			t.Errorf("%d places: left out: %q, want %q", names, got, want)
		}
	}
}
