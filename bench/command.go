package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/terracecache/terrace/coordinator/config"
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

// run is the command without the process around it: it returns the exit code. An
// error is one line on stderr, and so is each fault of a document.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := rootCommand(stdin, stdout, stderr)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(withArguments(ctx, args))
	if err == nil {
		return exitOK
	}
	if faults := config.Faults(nil); errors.As(err, &faults) {
		for _, f := range faults {
			fmt.Fprintln(stderr, oneLine(f.String()))
		}
	} else {
		fmt.Fprintln(stderr, "bench: "+oneLine(err.Error()))
	}
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, new(failure)):
		return exitFailure
	default:
		return exitUsage
	}
}

// rootCommand is the command as a whole. Without a subcommand it compares
// combinations.
func rootCommand(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	c := combinationsCommand("bench", stdout, stderr)
	c.Args = noSuchCommand
	c.SilenceUsage = true
	c.SilenceErrors = true
	c.CompletionOptions.DisableDefaultCmd = true
	c.SetHelpCommand(helpCommand())
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w, see --help", err) })
	c.AddCommand(compareCommand(stdin, stdout, stderr), validateCommand(stdin, stdout, stderr),
		fleetCommand(stdout, stderr), traceCommand(stdin, stdout, stderr), adviseCommand(stdin, stdout, stderr), processCommand(stdin, stdout),
		stampedeCommand(stdout, stderr), jitterCommand(stdout, stderr), xfetchCommand(stdout, stderr))
	return c
}

// helpCommand is cobra's own, but for commands that there are not.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(c *cobra.Command, args []string) error {
			about, left, err := c.Root().Find(args)
			if err != nil {
				return err
			}
			if err := noSuchCommand(c.Root(), left); err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// flagSettings are what a command is run with, all of it set by flags.
type flagSettings interface {
	register(f *pflag.FlagSet)
	// fromFlags completes the settings, and returns what is wrong with them.
	fromFlags(f *pflag.FlagSet) error
}

// withSettings completes a command that takes no arguments: its settings are checked
// before it runs.
func withSettings(c *cobra.Command, s flagSettings, run func(context.Context) error) *cobra.Command {
	c.Args = noArguments
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := s.fromFlags(c.Flags()); err != nil {
			return err
		}
		return run(c.Context())
	}
	c.Flags().SortFlags = false
	s.register(c.Flags())
	return c
}

// noSuchCommand refuses arguments that name no command.
func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		var names []string
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" {
				names = append(names, sub.Name())
			}
		}
		last := len(names) - 1
		return fmt.Errorf("there is no command %q: want %s or %s, or flags alone, see --help", args[0], strings.Join(names[:last], ", "), names[last])
	}
	return nil
}

// noArguments refuses arguments, which a flag without its dashes becomes.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		if ext := filepath.Ext(args[0]); c.Flags().Lookup("config") != nil && (ext == ".yaml" || ext == ".yml") {
			return fmt.Errorf("unexpected argument %q: want --config %s", args[0], quoted(args[0]))
		}
		return fmt.Errorf("unexpected argument %q: everything is set by flags, see --help", args[0])
	}
	return nil
}

func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
