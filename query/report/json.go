package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// SchemaVersion is the version of the JSON objects that wpptrace writes. Within a version, members
// are only added. In version 1, what was not known was 0 or an empty text; since 2 it is null.
const SchemaVersion = 2

// WriteJSON writes an object as JSON, on a line. what is what an error calls it.
func WriteJSON(w io.Writer, object any, what string) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}

// Marshal is json.Marshal, but that it leaves < and > as they are.
func Marshal(object any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(object)
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'}), err
}

// known is a value, or null in JSON where it is the one that stands for what is not known.
func known[T comparable](value, unknown T) *T {
	if value == unknown {
		return nil
	}
	return &value
}
