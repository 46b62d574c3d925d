package main

import (
	"fmt"
	"os"
	"strings"
)

// replaceTable puts a Markdown table into a document, below the line that marks its
// place: <!-- name -->. A table that is there is replaced.
func replaceTable(file, name, table string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	marker := "<!-- " + name + " -->\n"
	before, after, found := strings.Cut(string(content), marker)
	if !found {
		return fmt.Errorf("%s has no line %s", file, strings.TrimSpace(marker))
	}
	after = strings.TrimLeft(after, "\n")
	for strings.HasPrefix(after, "|") {
		_, after, _ = strings.Cut(after, "\n")
	}
	content = []byte(before + marker + "\n" + strings.Trim(table, "\n") + "\n\n" + strings.TrimLeft(after, "\n"))
	return os.WriteFile(file, content, 0o644) // where there is none yet, ReadFile has failed
}
