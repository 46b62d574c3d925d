package page_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/terracecache/terrace/bench/internal/page/pagetest"
)

func TestPageInABrowser(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := sample().WriteHTML(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	pagetest.Open(t, file, len(sample().Sections[0].Figures)+len(sample().Sections[1].Figures))
}
