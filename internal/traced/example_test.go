package traced_test

import (
	"fmt"
	"log"
	"os"
	"regexp"

	"wpptrace/internal/traced"
)

// Plan the routines of a program whose names begin with "execute_".
func ExampleLoad() {
	file, err := os.Open("/bin/bash")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	only := []*regexp.Regexp{regexp.MustCompile("^execute_")}
	program, err := traced.Load(file, "bash", traced.Selection{Only: only})
	if err != nil {
		log.Fatal(err)
	}
	if err := program.CheckRecordable("bash"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(program.IsPart())
	// Output:
	// true
}
