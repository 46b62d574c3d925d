package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailure     = 1   // it began and could not go on
	exitUsage       = 2   // it could not begin: flags, servers, files
	exitInterrupted = 130 // as shells count SIGINT
)

// errInterrupted ends a command whose context was cancelled, when it has printed
// what it had.
var errInterrupted = errors.New("interrupted")

// failure is an error that came up after the command had begun.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// run is the command without the process around it: it returns the exit code, and
// an error is one line on stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := compareCommand(stdout, stderr)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(stderr, "bench: "+oneLine(err.Error()))
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, new(failure)):
		return exitFailure
	default:
		return exitUsage
	}
}

// noArguments refuses arguments, which a flag without its dashes becomes.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q: everything is set by flags, see --help", args[0])
	}
	return nil
}

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
