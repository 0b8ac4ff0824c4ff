//go:build linux && cgo

package usermode_test

import (
	"fmt"
	"testing"

	"wpptrace/bpf"
	"wpptrace/bpf/usermode"
	"wpptrace/bpf/wire"
)

func TestMemoryAtAnyAddress(t *testing.T) {
	m := usermode.Memory{}
	m.Set(0x1003, 0x1122334455667788)
	if w, ok := m.Read(0x1003, 8); !ok || w != 0x1122334455667788 {
		t.Errorf("read %x, %v", w, ok)
	}
	if w, ok := m.Read(0x1000, 8); !ok || w != 0x4455667788000000 {
		t.Errorf("the word below reads %x, %v", w, ok)
	}
	if _, ok := m.Read(0x1009, 8); ok {
		t.Error("bytes that nobody has stored can be read")
	}
	if w, ok := m.Read(0x1005, 2); !ok || w != 0x5566 {
		t.Errorf("two bytes read %x, %v", w, ok)
	}
	if w, ok := m.Read(0x1007, 2); !ok || w != 0x3344 {
		t.Errorf("two bytes of two words read %x, %v", w, ok)
	}
	if w, ok := m.Read(0x100e, 2); !ok || w != 0 {
		t.Errorf("the last two bytes read %x, %v", w, ok)
	}
}

func ExampleMachine() {
	// je, CFA = rsp + 16
	sites := []bpf.TracerSite{{Base: 4, Offset: 16, Condition: 4, CaptureReg: usermode.NoReg,
		CaptureIndex: usermode.NoReg}}
	m := usermode.New(sites, nil, 0x400000, 0x1000)
	t := usermode.NewThread(1, 0, false)
	defer t.Free()
	var r usermode.Registers
	r.General[4] = 0x7ffc0ff0
	const zf = 1 << 6
	for _, flags := range []uint64{zf, zf, 0} {
		r.Flags = flags
		m.Hit(t, 0, &r)
	}
	m.Drain(t)
	b, err := wire.ParseBatch(m.Records[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range b.Len() {
		fmt.Println(b.Event(i))
	}
	// Output:
	// hit 0:1 cfa 7ffc1000
	// repeat 1
	// hit 0:0 cfa 7ffc1000
}
