package tier

import (
	"slices"
	"time"
)

// Entry is one cached answer: a value, or the knowledge that there is none, with
// the times that govern its use. It is immutable and shared by pointer between
// tiers and readers; whoever holds one may keep it. The value inside is shared too
// and must not be changed by those who read it.
type Entry[V any] struct {
	value       V
	loadedAt    Instant
	freshUntil  Instant
	usableUntil Instant
	loadTime    time.Duration
	extra       *extra // nil for most entries, which keeps them small
}

// extra holds what most entries do not have.
type extra struct {
	absent    bool
	tags      []string
	validator string
}

// plainAbsent serves all absent entries without tags or validator.
var plainAbsent = &extra{absent: true}

// Meta is what is known of a value besides the value.
type Meta struct {
	// LoadedAt is when the load of the value BEGAN: what it shows of the origin
	// is at least this old.
	LoadedAt Instant
	// FreshUntil is when the value turns stale.
	FreshUntil Instant
	// UsableUntil is when the value must no longer be served, stale or not.
	UsableUntil Instant
	// LoadTime is how long the load took: XFetch's delta. Zero when unknown.
	LoadTime time.Duration
	// Absent marks the knowledge that the origin has no value for the key.
	Absent bool
	// Tags name the groups that the entry can be invalidated by.
	Tags []string
	// Validator is the origin's mark of this version of the value (an ETag).
	Validator string
}

// NewEntry makes an entry. The tags are copied, the value is not.
func NewEntry[V any](value V, m Meta) *Entry[V] {
	e := new(Entry[V])
	e.set(value, &m)
	return e
}

func (e *Entry[V]) set(value V, m *Meta) {
	e.value = value
	e.loadedAt, e.freshUntil, e.usableUntil, e.loadTime = m.LoadedAt, m.FreshUntil, m.UsableUntil, m.LoadTime
	switch {
	case len(m.Tags) > 0 || m.Validator != "":
		e.extra = &extra{absent: m.Absent, tags: slices.Clone(m.Tags), validator: m.Validator}
	case m.Absent:
		e.extra = plainAbsent
	}
}

// Value returns the cached value; the zero value for an absent entry.
func (e *Entry[V]) Value() V { return e.value }

// LoadedAt returns when the load of the value began.
func (e *Entry[V]) LoadedAt() Instant { return e.loadedAt }

// FreshUntil returns when the entry turns stale.
func (e *Entry[V]) FreshUntil() Instant { return e.freshUntil }

// UsableUntil returns when the entry dies.
func (e *Entry[V]) UsableUntil() Instant { return e.usableUntil }

// LoadTime returns how long the load took; zero when unknown.
func (e *Entry[V]) LoadTime() time.Duration { return e.loadTime }

// Absent reports whether the entry says that there is no value.
func (e *Entry[V]) Absent() bool { return e.extra != nil && e.extra.absent }

// Tags returns the entry's tags, which must not be changed.
func (e *Entry[V]) Tags() []string {
	if e.extra == nil {
		return nil
	}
	return e.extra.tags
}

// Validator returns the origin's mark of this version; empty when there is none.
func (e *Entry[V]) Validator() string {
	if e.extra == nil {
		return ""
	}
	return e.extra.validator
}

// Meta returns all that is known besides the value.
func (e *Entry[V]) Meta() Meta {
	return Meta{
		LoadedAt:    e.loadedAt,
		FreshUntil:  e.freshUntil,
		UsableUntil: e.usableUntil,
		LoadTime:    e.loadTime,
		Absent:      e.Absent(),
		Tags:        e.Tags(),
		Validator:   e.Validator(),
	}
}

// Capped returns the entry with a life that ends at the given instant at the
// latest: itself where it dies sooner anyway, else a copy. FreshUntil stays as it
// is, so that a refresh policy decides on every copy alike.
func (e *Entry[V]) Capped(until Instant) *Entry[V] {
	if e.usableUntil <= until {
		return e
	}
	c := *e
	c.usableUntil = until
	return &c
}

// Expired returns a copy that is stale since the given instant, usable as before.
func (e *Entry[V]) Expired(at Instant) *Entry[V] {
	if e.freshUntil <= at {
		return e
	}
	c := *e
	c.freshUntil = at
	return &c
}
