package original_test

import (
	"fmt"
	"log"

	"wpptrace/compress/wpp"
	"wpptrace/internal/original"
)

// The file that is named is another build than that which was recorded.
func ExampleOpenBinary() {
	s := &wpp.Snapshot{Images: []wpp.Image{{Name: "true", BuildID: []byte{0xab, 0xcd}}}}
	im, path, err := original.OpenBinary(s, 0, "/bin/true")
	if err != nil {
		fmt.Println("it is another build")
		return
	}
	defer im.Close()
	log.Fatal(path)
	// Output:
	// it is another build
}
