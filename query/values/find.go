package values

import (
	"fmt"

	"wpptrace/compress/wpp"
	"wpptrace/query/names"
)

// Find returns the instruction that a text stands for, as Places takes it. It fails where there is
// none, or where there are several.
func Find(s *wpp.Snapshot, text string) (Instruction, error) {
	list, err := Places(s, text)
	switch {
	case err != nil:
		return Instruction{}, err
	case len(list) > 1:
		return Instruction{}, fmt.Errorf("find %s: %d instructions are there: name one, as "+
			"values --at prints them", names.Printable(text), len(list))
	}
	return list[0], nil
}
