package config

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// nearest returns the valid name that was probably meant, or "". Other names for one
// thing, and other ways to write a name, count as near.
func nearest(text string, valid []string, also map[string]string) string {
	plain := plainName(text)
	if name, ok := also[plain]; ok {
		return name
	}
	far := max(2, len(plain)/3) // two letters that change places are two
	if len(plain) <= 3 {
		far = 1
	}
	best, least := "", far+1
	for _, name := range valid {
		if d := levenshtein.ComputeDistance(plain, plainName(name)); d < least {
			best, least = name, d
		}
	}
	return best
}

// plainName forgets how a name is written: staleWhileRevalidate, stale-while-revalidate.
func plainName(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(s))
}
