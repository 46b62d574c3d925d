package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/terracecache/terrace/coordinator/config"
)

// compareDocuments is compare for the caches of documents.
func compareDocuments(ctx context.Context, s *settings, stdin io.Reader, stdout, stderr io.Writer) error {
	out, err := openOutput(s.outputFiles, stdout, slices.Concat(s.Config, []string{s.Trace})...)
	if err != nil {
		return err
	}
	defer out.discard()
	documents, err := readDocuments(ctx, s.Config, stdin)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	if faults := parseDocuments(documents, s.Set); len(faults) > 0 {
		return faults
	}
	all := configuredOf(documents)
	if err := buildable(ctx, all); err != nil {
		return err
	}
	for _, c := range all {
		// Before anything is measured, so that it costs nobody a run.
		err := c.server(c.probe).answers(ctx)
		if ctx.Err() != nil {
			return errInterrupted
		}
		if err != nil {
			return fmt.Errorf("--config: %w", err)
		}
	}
	rep := &report{Environment: newEnvironment(ctx, s, nil), Rows: []row{}}
	rep.Environment.describe(documents)
	var groups []group
	for _, c := range all {
		groups = append(groups, group{name: c.label, contenders: []*contender{c.contender()}})
	}
	return rep.measure(ctx, s, groups, out, stderr)
}

// configuredOf returns the caches of the documents, in their order.
func configuredOf(documents []*document) []*configured {
	var all []*configured
	for _, d := range documents {
		for _, name := range d.Names() {
			all = append(all, newConfigured(d, name, len(documents) > 1))
		}
	}
	return all
}

// buildable returns what of the caches cannot be built for keys of text and values of
// bytes: all faults, or else the first error of another kind.
func buildable(ctx context.Context, all []*configured) error {
	var faults config.Faults
	var other error
	for _, c := range all {
		cache, err := c.build(c.doc.Document, nil)
		if err == nil {
			_ = cache.Close(context.WithoutCancel(ctx)) // it has done nothing
			continue
		}
		if some := config.Faults(nil); errors.As(err, &some) {
			faults = append(faults, some...)
		} else if other == nil {
			other = fmt.Errorf("--config: %s: %w", c.label, err)
		}
	}
	if len(faults) > 0 {
		return faults
	}
	return other
}

// describe tells what the documents say, and what is unwise in them.
func (e *environment) describe(documents []*document) {
	for _, d := range documents {
		e.Config = append(e.Config, documentOfRows{File: d.name, Caches: strings.Split(d.String(), "\n")})
		for _, w := range d.Warnings() {
			e.Notes = append(e.Notes, warning(w))
		}
	}
}
