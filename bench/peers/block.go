package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// block is what is measured in turn: one group with one number of goroutines.
type block struct {
	group      string
	of         string  // what of the group it is, where that has several tables
	x          float64 // what of it grows, in the groups of growth
	goroutines int
	rounds     int // at most; 0: as many as asked for
	subjects   []subject
	// relate adds to the rows what follows from several of them. It may be nil.
	relate func([]row)
}

// subject is what becomes one row.
type subject struct {
	name    string
	module  string // empty: Go's own
	server  serverKind
	measure func(context.Context) (sample, error)
}

// group makes the blocks of a name. Nothing is opened or drawn before it is measured.
type group struct {
	name   string
	blocks func(*peers) []block
}

// allGroups are the groups in the order in which they run.
var allGroups = []group{
	{"hit-hot", hitHot},
	{"hit-onekey", hitOneKey},
	{"hit-zipf", hitZipf},
	{"mix", mixed},
	{"set", set},
	{"promote", promote},
	{"beside", beside},
	{"stampede", stampede},
	{"memory", memory},
	{"remote-100", remote100},
	{"remote-1024", remote1024},
	{"batch-64", batch64},
}

func groupNames() []string {
	var names []string
	for _, g := range allGroups {
		names = append(names, g.name)
	}
	return names
}

// contestants in memory, in the order of the rows. Those with int keys are in hit-hot
// alone.
var (
	contestants = []contestant[string]{
		terraceSieve, terraceLRU,
		otterPlain, otterLoading, theineLoading, ristrettoPlain, ristrettoTTL,
		golangLRU, golangLRUExpirable, sturdycPlain, sturdycEarly, ttlCache, hotLRU,
		groupCache, goRedisCache, rueidisDoCache, rwMutexMap, syncMap,
	}
	intContestants = []contestant[int]{terraceSieveInt, terraceLRUInt}
)

// Contestants that ask a server.
var (
	remoteContestants = []remoteContestant{
		terraceRedis, goRedisGet, goRedisAutoPipeline, goRedisFullDuplex, rueidisDo, rueidisDelay, goRedisCacheRemote,
		terraceMemcached, gomemcacheGet,
	}
	batchContestants = []batchContestant{goRedisPipeline, goRedisMGet, rueidisDoMulti, gomemcacheGetMulti}
)

// selectSubjects leaves the subjects that have one of the names, or a name that one of
// them begins up to a dash; all where there are no names.
func selectSubjects(blocks []block, names []string) []block {
	if len(names) == 0 {
		return blocks
	}
	return filterSubjects(blocks, func(s subject) bool { return slices.ContainsFunc(names, s.isCalled) })
}

// title says what is measured.
func (b block) title() string {
	title := b.group
	if b.of != "" {
		title += ", " + b.of
	}
	if b.goroutines == 1 {
		return title + ", 1 goroutine"
	}
	return fmt.Sprintf("%s, %d goroutines", title, b.goroutines)
}

func filterSubjects(blocks []block, keep func(subject) bool) []block {
	var left []block
	for _, b := range blocks {
		var subjects []subject
		for _, s := range b.subjects {
			if keep(s) {
				subjects = append(subjects, s)
			}
		}
		if len(subjects) > 0 {
			b.subjects = subjects
			left = append(left, b)
		}
	}
	return left
}

func (s subject) isCalled(name string) bool {
	return s.name == name || strings.HasPrefix(s.name, name+"-")
}
