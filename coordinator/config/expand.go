package config

import (
	"fmt"
	"regexp"
	"strings"
)

var variable = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// expand puts variables into the text of one value: ${NAME}, and ${NAME:-default} where
// NAME may be unset or empty; $$ is a dollar, and so is one that no { follows. It sees text that YAML has been made of
// already, so what it puts in stays text. It returns what is wrong, which names
// variables and never what is in them.
func expand(text string, env func(string) (string, bool)) (expanded, problem string) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String(), ""
		}
		if strings.HasPrefix(rest, "$") {
			b.WriteByte('$')
			text = rest[1:]
			continue
		}
		if !strings.HasPrefix(rest, "{") {
			b.WriteByte('$') // as passwords have it
			text = rest
			continue
		}
		m := variable.FindStringSubmatch("$" + rest)
		if m == nil {
			return "", "not ${NAME} or ${NAME:-default}, where a name has letters, digits and _: a dollar before a { is written $$"
		}
		name, hasDefault, standby := m[1], m[2] != "", m[3]
		if strings.Contains(standby, "$") {
			return "", "the default inside ${…} cannot hold a $"
		}
		value, ok := env(name)
		switch {
		case hasDefault && value == "":
			value = standby
		case !ok:
			return "", fmt.Sprintf("the variable %s is not set: set it, or give a default as ${%s:-default}", name, name)
		}
		b.WriteString(strings.TrimRight(value, "\r\n")) // with which secrets in files often end
		text = rest[len(m[0])-1:]
	}
}

// withoutBraces is text that was probably meant to be a variable.
var withoutBraces = regexp.MustCompile(`^\$[A-Z][A-Z0-9_]*$`)
