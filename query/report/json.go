package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// SchemaVersion is the version of the JSON objects that wpptrace writes. Within a version, members
// are only added.
const SchemaVersion = 1

// WriteJSON writes an object as JSON, on a line. what is what an error calls it.
func WriteJSON(w io.Writer, object any, what string) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}
