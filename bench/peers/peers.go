package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
)

// peers is a run of the comparison.
type peers struct {
	*settings
	address    map[serverKind]string
	serverSeed uint64 // of the keys in servers
	drawn      uint64 // how many times keys of it were drawn that nobody else has
	stderr     io.Writer
}

func newPeers(s *settings, stderr io.Writer) *peers {
	return &peers{settings: s, address: make(map[serverKind]string), serverSeed: rand.Uint64(), stderr: stderr}
}

// blocks returns what the settings ask for.
func (p *peers) blocks() []block {
	var blocks []block
	for _, g := range allGroups {
		if p.wantsGroup(g.name) {
			blocks = append(blocks, g.blocks(p)...)
		}
	}
	return selectSubjects(blocks, p.Names)
}

// openServers finds or starts the servers that the blocks need, and leaves out what
// needs one that is not installed. What it returns ends those that it started.
func (p *peers) openServers(ctx context.Context, blocks []block) (left []block, stop func(), err error) {
	var started []*server
	stop = func() {
		for _, s := range started {
			s.stop()
		}
	}
	given := map[serverKind]string{redisServer: p.Redis, memcachedServer: p.Memcached}
	for _, kind := range []serverKind{redisServer, memcachedServer} {
		if !needs(blocks, kind) {
			continue
		}
		s, err := useServer(ctx, kind, given[kind])
		if err == nil {
			started = append(started, s)
			p.address[kind] = s.address
			continue
		}
		if !isNotInstalled(err) {
			stop()
			return nil, nil, err
		}
		p.warn("left out what needs %s: it %v", programs[kind].name, errNotInstalled)
		blocks = filterSubjects(blocks, func(s subject) bool { return s.server != kind })
	}
	return blocks, stop, nil
}

func needs(blocks []block, kind serverKind) bool {
	return len(filterSubjects(blocks, func(s subject) bool { return s.server == kind })) > 0
}

// run measures the blocks one after the other, and hands each with its rows to done.
func (p *peers) run(ctx context.Context, blocks []block, done func(block, []row) error) error {
	for i, b := range blocks {
		p.say("%s: %d rows", b.title(), len(b.subjects))
		rows, err := p.measure(ctx, blocks[i:i+1])
		if err != nil {
			return err
		}
		if err := done(b, rows[0]); err != nil {
			return err
		}
		blocks[i] = block{} // and the sequences that its subjects have drawn
	}
	return nil
}

// measure goes round the subjects of the blocks, so that what disturbs the machine for
// a while disturbs all of them alike. It returns the rows of each block.
func (p *peers) measure(ctx context.Context, blocks []block) ([][]row, error) {
	samples := make([][][]sample, len(blocks))
	for i, b := range blocks {
		samples[i] = make([][]sample, len(b.subjects))
	}
	for round := range p.Rounds {
		for i, b := range blocks {
			if b.rounds > 0 && round >= b.rounds {
				continue
			}
			for j, s := range b.subjects {
				if err := context.Cause(ctx); err != nil {
					return nil, err
				}
				measured, err := s.measure(ctx)
				if err != nil {
					return nil, fmt.Errorf("%s: %s: %w", b.group, s.name, err)
				}
				samples[i][j] = append(samples[i][j], measured)
			}
		}
	}
	rows := make([][]row, len(blocks))
	for i, b := range blocks {
		for j, s := range b.subjects {
			rows[i] = append(rows[i], newRow(b, s, samples[i][j]))
		}
		if b.relate != nil {
			b.relate(rows[i])
		}
	}
	return rows, nil
}

// say tells how far the run is.
func (p *peers) say(format string, args ...any) { fmt.Fprintf(p.stderr, format+"\n", args...) }

// warn tells what a reader of the figures must know.
func (p *peers) warn(format string, args ...any) { p.say("! "+format, args...) }
