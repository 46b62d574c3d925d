package main

import (
	"context"
	"regexp"
	"strings"
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

// quoted returns a word as a shell reads it.
func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
