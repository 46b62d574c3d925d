package config

import (
	"regexp"
	"strings"
)

// masked returns text as anybody may see it. Of text with variables only their names
// are shown, as the rest may be the user and password around them; and nothing of what
// looks like a URL, which may be in the wrong place.
func masked(text string) string {
	switch {
	case strings.Contains(text, "${"):
		return variablesOf(text)
	case strings.Contains(text, "://"), strings.Contains(text, "@"):
		return ""
	default:
		return text
	}
}

var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)

// variablesOf returns the variables that the text names, without their defaults.
func variablesOf(text string) string {
	var all []string
	for _, m := range reference.FindAllStringSubmatch(text, -1) {
		all = append(all, "${"+m[1]+"}")
	}
	return strings.Join(all, " ")
}

func orHidden(text string) string {
	if text == "" {
		return "(hidden)"
	}
	return text
}

var quoted = regexp.MustCompile("'[^']*'|\"[^\"]*\"|`[^`]*`")

// withoutQuotes takes out of a library's message what it quotes, unless that is a sign
// or two.
func withoutQuotes(s string) string {
	return quoted.ReplaceAllStringFunc(s, func(q string) string {
		if len(q) <= 4 {
			return q
		}
		return "…"
	})
}
