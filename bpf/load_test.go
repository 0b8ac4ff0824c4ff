package bpf

import (
	"errors"
	"testing"

	"github.com/cilium/ebpf"
)

func TestLoad(t *testing.T) {
	takingValues := func() (*ebpf.CollectionSpec, error) {
		spec, err := LoadTracer()
		if err == nil {
			err = spec.Variables["values"].Set(uint32(1))
		}
		return spec, err
	}
	for _, load := range []func() (*ebpf.CollectionSpec, error){LoadTracer, takingValues,
		LoadSample, LoadCount, LoadFirst} {
		spec, err := load()
		if err != nil {
			t.Fatal(err)
		}
		c, err := ebpf.NewCollection(spec)
		var ve *ebpf.VerifierError
		if errors.As(err, &ve) {
			t.Fatalf("%+v", ve)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
}
