package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

const validateHelp = `Tells what the caches of documents would run, or all that is wrong with them, without
running anything or connecting to a server. docs/configuration.md describes documents.

What would run is on stdout, one line a cache. Faults and warnings are on stderr, one
line each: FILE:LINE:COLUMN: what is wrong. - is stdin. Secrets are never shown.

Exit codes: 0: nothing is wrong. 1: something is. 2: a file cannot be read.`

const validateExample = `  go run ./bench validate caches.yaml
  go run ./bench validate staging.yaml production.yaml
  go run ./bench validate caches.yaml --set products.tiers.l1.capacity=500
  helm template . | go run ./bench validate -`

func validateCommand(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	var sets []string
	c := &cobra.Command{
		Use:     "validate FILE...",
		Short:   "Tell what documents would run, or all that is wrong with them",
		Long:    validateHelp,
		Example: validateExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("validate: no file: name documents, or - for stdin, see --help")
			}
			return nil
		},
		RunE: func(c *cobra.Command, files []string) error {
			return validate(c.Context(), files, sets, stdin, stdout, stderr)
		},
	}
	c.Flags().SortFlags = false
	registerSet(c.Flags(), &sets)
	return c
}

// validate tells of good documents what they would run, and returns the faults of the
// others.
func validate(ctx context.Context, files, sets []string, stdin io.Reader, stdout, stderr io.Writer) error {
	documents, err := readDocuments(ctx, files, stdin)
	if err != nil {
		return fmt.Errorf("validate: %w", err)
	}
	faults := parseDocuments(documents, sets)
	for _, d := range documents {
		if d.Document == nil {
			continue
		}
		for line := range strings.Lines(d.String()) {
			if len(documents) > 1 {
				line = d.name + ": " + line
			}
			fmt.Fprintln(stdout, strings.TrimSuffix(line, "\n"))
		}
		for _, w := range d.Warnings() {
			fmt.Fprintln(stderr, warning(w))
		}
	}
	if len(faults) > 0 {
		return failure{faults}
	}
	return nil
}
