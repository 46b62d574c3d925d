package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// argumentsKey is of a context's value that holds the command's arguments.
type argumentsKey struct{}

func withArguments(ctx context.Context, args []string) context.Context {
	return context.WithValue(ctx, argumentsKey{}, args)
}

// commandLine returns the command that runs in the context, as for a shell and without
// secrets.
func commandLine(ctx context.Context) string {
	args, _ := ctx.Value(argumentsKey{}).([]string)
	words := []string{"go run ./bench"}
	for _, a := range args {
		words = append(words, quoted(withoutSecrets(a)))
	}
	return strings.Join(words, " ")
}

var (
	// userOfURL is a URL's user and password.
	userOfURL = regexp.MustCompile(`(://).*@`)
	// queryOfURL is what follows behind a URL's path, where keys of interfaces stand.
	queryOfURL = regexp.MustCompile(`(://[^?#]*)[?#].*`)
	// secretField is a field of a document that holds a secret, as --set names it.
	secretField = regexp.MustCompile(`(?i)^((?:--set=)?[^=]*(?:key|password|secret|token)[^=.]*=).*`)
)

// withoutSecrets leaves out of an argument what may be one: all of a URL but its scheme,
// host and path, and values of fields that are named so.
func withoutSecrets(argument string) string {
	argument = userOfURL.ReplaceAllString(argument, "$1…@")
	argument = queryOfURL.ReplaceAllString(argument, "$1?…")
	if strings.HasPrefix(argument, "--set=") || !strings.HasPrefix(argument, "-") {
		argument = secretField.ReplaceAllString(argument, "$1…")
	}
	return argument
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./…-]+$`)

// quoted returns a word as a shell reads it, in one line of printable text.
func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	if utf8.ValidString(word) && !strings.ContainsFunc(word, isHidden) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for len(word) > 0 {
		r, n := utf8.DecodeRuneInString(word)
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == utf8.RuneError && n == 1 || isHidden(r):
			for _, c := range []byte(word[:n]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteString(word[:n])
		}
		word = word[n:]
	}
	b.WriteByte('\'')
	return b.String()
}

// asOperand returns the name of a file so that no command takes it for a flag; - is stdin.
func asOperand(file string) string {
	if strings.HasPrefix(file, "-") && file != "-" {
		return "./" + file
	}
	return file
}

// isHidden reports whether a reader cannot tell the rune from nothing, a space or a line's end.
func isHidden(r rune) bool { return !unicode.IsPrint(r) }
