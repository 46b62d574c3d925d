package tier

import (
	"reflect"
	"testing"
	"time"
	"unsafe"
)

func TestEntryMeta(t *testing.T) {
	for name, want := range map[string]Meta{
		"zero":      {},
		"plain":     {LoadedAt: 1, FreshUntil: 2, UsableUntil: 3, LoadTime: 4},
		"absent":    {UsableUntil: 3, Absent: true},
		"tags":      {UsableUntil: 3, Tags: []string{"a", ""}},
		"validator": {UsableUntil: 3, Validator: "v"},
		"all":       {LoadedAt: 1, FreshUntil: 2, UsableUntil: 3, LoadTime: 4, Absent: true, Tags: []string{"a"}, Validator: "v"},
	} {
		e := NewEntry("value", want)
		if got := e.Meta(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: Meta = %+v, want %+v", name, got, want)
		}
		if e.Value() != "value" || e.LoadedAt() != want.LoadedAt || e.FreshUntil() != want.FreshUntil || e.UsableUntil() != want.UsableUntil ||
			e.LoadTime() != want.LoadTime || e.Absent() != want.Absent || !reflect.DeepEqual(e.Tags(), want.Tags) || e.Validator() != want.Validator {
			t.Errorf("%s: the getters differ from %+v", name, want)
		}
	}
}

func TestEntryIsImmutable(t *testing.T) {
	tags := []string{"a", "b"}
	e := NewEntry(1, Meta{FreshUntil: 10, UsableUntil: 20, Tags: tags})
	tags[0] = "changed"
	if got := e.Tags()[0]; got != "a" {
		t.Errorf("a change of the slice given made the tag %q", got)
	}
	before := e.Meta()
	capped, expired := e.Capped(5), e.Expired(3)
	if !reflect.DeepEqual(e.Meta(), before) {
		t.Errorf("Capped or Expired changed the entry to %+v", e.Meta())
	}
	if capped.UsableUntil() != 5 || capped.FreshUntil() != 10 || capped.Tags()[0] != "a" {
		t.Errorf("Capped(5) = %+v, want only UsableUntil 5", capped.Meta())
	}
	if expired.FreshUntil() != 3 || expired.UsableUntil() != 20 {
		t.Errorf("Expired(3) = %+v, want only FreshUntil 3", expired.Meta())
	}
	for _, until := range []Instant{20, 21, Never} {
		if e.Capped(until) != e {
			t.Errorf("Capped(%d) is a copy of an entry that dies sooner", until)
		}
	}
	for _, at := range []Instant{10, 11, Never} {
		if e.Expired(at) != e {
			t.Errorf("Expired(%d) is a copy of an entry that is stale sooner", at)
		}
	}
}

// An L1 of a million entries feels each word.
func TestEntryIsSmall(t *testing.T) {
	if got := unsafe.Sizeof(Entry[*int]{}); got > 48 {
		t.Errorf("an entry with a pointer takes %d bytes, want at most 48", got)
	}
	if n := testing.AllocsPerRun(100, func() { NewEntry(1, Meta{UsableUntil: 1, LoadTime: time.Second, Absent: true}) }); n > 1 {
		t.Errorf("NewEntry allocates %v times, want 1", n)
	}
}
