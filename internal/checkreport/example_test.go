package checkreport_test

import (
	"errors"
	"fmt"
	"os"

	"wpptrace/internal/checkreport"
	"wpptrace/loader/requirement"
)

// What is missing is printed with its fix.
func ExampleReport() {
	r := checkreport.New(error.Error)
	r.Add(requirement.Requirement{Name: "kernel", Find: func() (string, error) {
		return "6.12", nil
	}}, requirement.Requirement{Name: "privileges", Find: func() (string, error) {
		return "", errors.New("none")
	}, Fix: "run it as root"})
	if err := r.WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	fmt.Println(r.OK)
	// Output:
	// ok       kernel           6.12
	// missing  privileges       none: run it as root
	// false
}
