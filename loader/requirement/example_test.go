package requirement_test

import (
	"fmt"

	"wpptrace/loader/requirement"
)

func ExampleOfMachine() {
	for _, r := range requirement.OfMachine() {
		if _, err := r.Find(); err != nil {
			fmt.Printf("%s: %v: %s\n", r.Name, err, r.Fix)
		}
	}
}
