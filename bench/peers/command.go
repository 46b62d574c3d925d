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

// errInterrupted ends a command whose context was cancelled, when it has written what
// it had.
var errInterrupted = errors.New("interrupted")

// failure is an error that came up after the command had begun.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// run is the command without the process around it: it returns the exit code, and an
// error is one line on stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := command(stdout, stderr)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(stderr, "peers: "+oneLine(err.Error()))
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, new(failure)):
		return exitFailure
	default:
		return exitUsage
	}
}

func command(stdout, stderr io.Writer) *cobra.Command {
	var s settings
	c := &cobra.Command{
		Use:   "peers",
		Short: "Measure Terrace and other cache libraries by the same work",
		Long: "Measure Terrace and other cache libraries by the same work, in turn, and print a table\n" +
			"for each group of workloads. All of it takes about twenty minutes.\n" +
			"docs/peers.md tells what is compared and how.",
		Args:          noArguments,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.validate(c.Flags().Changed); err != nil {
				return err
			}
			return compare(c.Context(), &s, stdout, stderr)
		},
	}
	s.register(c.Flags())
	c.AddCommand(growthCommand(stdout, stderr))
	c.CompletionOptions.DisableDefaultCmd = true
	return c
}

// compare runs the comparison and writes what it found, also where it ends early.
func compare(ctx context.Context, s *settings, stdout, stderr io.Writer) error {
	out, err := openOutput(s.JSON, stdout)
	if err != nil {
		return err
	}
	defer out.discard()
	p := newPeers(s, stderr)
	blocks, stop, err := p.openServers(ctx, p.blocks())
	if err != nil {
		return err
	}
	defer stop()
	if len(blocks) == 0 {
		return errors.New("nothing is left to measure")
	}
	if err := out.begin(s); err != nil {
		return failure{err}
	}
	err = p.run(ctx, blocks, out.add)
	switch {
	case ctx.Err() != nil:
		err = errInterrupted
	case err != nil:
		err = failure{err}
	}
	if endErr := out.end(); endErr != nil && err == nil {
		err = failure{endErr}
	}
	return err
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
