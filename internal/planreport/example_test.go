package planreport_test

import (
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"wpptrace/internal/planreport"
	"wpptrace/internal/record"
	"wpptrace/internal/record/overhead"
	"wpptrace/internal/traced"
	"wpptrace/loader/attach"
)

// What is planned of a program, and whether the plan holds.
func ExampleReport() {
	file, err := os.Open("/bin/true")
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	program, err := traced.Load(file, "true", traced.Selection{})
	if err != nil {
		log.Fatal(err)
	}
	r := planreport.New(program, "true", traced.Selection{}, nil)
	r.AddProof(planreport.Faults(program.Plan))
	var text strings.Builder
	if err := r.WriteText(&text, false); err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Contains(text.String(), "\nverified "), r.Unproven())
	// Output:
	// true <nil>
}

// What a program's file is asked about.
func ExampleQuestion() {
	q := planreport.Question{File: "/bin/true", Prove: true}
	r, err := q.Report()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Unproven())
	// Output:
	// <nil>
}

// A process that is at work half the time, of whose instructions one of 500 makes a hit.
func ExampleForecast() {
	cost := attach.Cost{Emulated: 500 * time.Nanosecond, Stepped: 10 * time.Microsecond}
	f := overhead.Forecast{Emulated: 0.002, Cost: cost}
	e := record.Forecast{Forecast: f, Load: 0.5, Probes: 800}
	for _, line := range planreport.Forecast(e, 0) {
		fmt.Println(line)
	}
	// Output:
	// slow-down: some 6.0 times while it runs its own code, 51 at most; it is measured as it runs
	// at its present load, 50% of a CPU: some 3.5 times
}
