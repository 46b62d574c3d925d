package main

import (
	"encoding/json"
	"io"
)

// report is all that a comparison found.
type report struct {
	Environment environment `json:"environment"`
	Rows        []row       `json:"rows"`
}

// writeJSON writes the report as one JSON document.
func (r *report) writeJSON(w io.Writer) error { return writeJSON(w, r) }

func writeJSON(w io.Writer, document any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(document)
}
