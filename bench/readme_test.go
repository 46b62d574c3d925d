package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The README's program is the tested example, and so compiles and does what it says.
func TestReadmeShowsTheExample(t *testing.T) {
	example := read(t, "../coordinator/example_test.go")
	_, example, _ = strings.Cut(example, "\n)\n\n") // behind the imports
	example, _, found := strings.Cut(example, "\n\n\t// Output:")
	if !found || !strings.Contains(read(t, "../README.md"), "```go\n"+example+"\n}\n```") {
		t.Errorf("the README's program is not coordinator/example_test.go's:\n%s", example)
	}
}

// Links between the documents lead somewhere.
func TestLinks(t *testing.T) {
	code := regexp.MustCompile("(?s)```.*?```")
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	for _, name := range []string{"../README.md", "../docs/bench.md"} {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(read(t, name), ""), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Flags that the documents name exist.
func TestDocumentsNameFlagsThatExist(t *testing.T) {
	has := func(name string) bool {
		return name == "help" || slices.ContainsFunc(rootCommand(nil, nil, nil).Commands(), func(c *cobra.Command) bool {
			return c.Flags().Lookup(name) != nil
		})
	}
	flag := regexp.MustCompile("(?:`| )--([a-z0-9-]+)")
	for _, name := range []string{"../README.md", "../docs/bench.md", "../.ci/run"} {
		var ours []string // the rest of a line that runs another program has that one's flags
		for line := range strings.Lines(read(t, name)) {
			if !strings.Contains(line, "bench/peers") {
				ours = append(ours, line)
			}
		}
		for _, m := range flag.FindAllStringSubmatch(strings.Join(ours, ""), -1) {
			if !has(m[1]) {
				t.Errorf("%s names --%s, which the bench does not have", name, m[1])
			}
		}
	}
}
