package bpf

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// TestLaterKernels: the tracer finds a thread's restartable sequences where Linux 6.19 and later
// have them, too, in a structure of their own. That is at the same place here, so that the kernel
// that runs takes the program.
func TestLaterKernels(t *testing.T) {
	var task *btf.Struct
	kernel, err := btf.LoadKernelSpec()
	if err == nil {
		err = kernel.TypeByName("task_struct", &task)
	}
	if err != nil {
		t.Fatal(err)
	}
	var at, size *btf.Member
	for i := range task.Members {
		switch m := &task.Members[i]; m.Name {
		case "rseq":
			at = m
		case "rseq_len":
			size = m
		}
	}
	if at == nil || size == nil {
		t.Skip("this kernel is one of the others, before Linux 6.3 or after 6.18")
	}
	offsets := [2]int16{int16(at.Offset.Bytes()), int16(size.Offset.Bytes())}
	isLoaded(t, task, offsets)
	later := &btf.Struct{Name: "rseq_data", Size: 16, Members: []btf.Member{
		{Name: "usrptr", Type: at.Type},
		{Name: "len", Type: size.Type, Offset: size.Offset - at.Offset},
	}}
	at.Type, size.Name = later, "elsewhere"
	isLoaded(t, task, offsets)
}

// isLoaded fails the test unless the tracer, on a kernel with such threads, loads a thread's area
// from there.
func isLoaded(t *testing.T, task *btf.Struct, offsets [2]int16) {
	t.Helper()
	b, err := btf.NewBuilder([]btf.Type{task}, nil)
	if err != nil {
		t.Fatal(err)
	}
	types, err := b.Spec()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := LoadTracer()
	if err == nil {
		err = spec.Variables["values"].Set(uint32(1))
	}
	if err != nil {
		t.Fatal(err)
	}
	spec.Programs = map[string]*ebpf.ProgramSpec{"hit": spec.Programs["hit"]}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{
		Programs: ebpf.ProgramOptions{KernelTypes: types}})
	if err != nil {
		t.Fatalf("%+v", err)
	}
	defer c.Close()
	info, err := c.Programs["hit"].Info()
	if err != nil {
		t.Fatal(err)
	}
	insns, err := info.Instructions()
	if err != nil {
		t.Fatal(err)
	}
	var found [2]bool
	for _, x := range insns {
		for i, o := range offsets {
			found[i] = found[i] || x.OpCode.Class().IsLoad() && x.Offset == o ||
				x.Constant == int64(o) // clang may add it
		}
	}
	if found != [2]bool{true, true} {
		t.Errorf("address and size are loaded: %v", found)
	}
}
