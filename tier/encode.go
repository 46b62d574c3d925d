package tier

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"time"
)

// EncodeOptions are what [EncodeWith] can be told.
type EncodeOptions[K comparable] struct {
	// Key turns a key into a string; different keys must give different strings.
	// Nil: strings as they are, integers in decimal, and for structs, arrays and
	// other kinds a binary form.
	Key func(K) string

	// ParseKey undoes Key: it returns the key that has a text, or any error where none
	// has. Only tracking needs it (see [Tracker]), and only beside Key. It may be called
	// concurrently.
	ParseKey func(text string) (K, error)

	// Schema names the meaning of the payload; entries of another schema are
	// unreadable. Empty: the codec's name and the value's type. Change it when the
	// type keeps its name and changes its meaning.
	Schema string

	// Compression makes payloads smaller; codec.Compression is one. Nil: payloads stay
	// as they are, and compressed ones are unreadable. So give it to all readers, with
	// an algorithm of none, before the first one writes compressed.
	Compression Compressor

	// Encryption hides and authenticates entries; codec.Encryption is one. Nil: entries
	// are in the clear, and encrypted ones are unreadable. With it entries in the clear
	// are unreadable. Keys stay visible, as do times and sizes. Caches that share an
	// encryption key should differ in Schema, or an entry may be moved from one to the
	// other under the same key.
	Encryption Sealer
}

// Encode makes a [Store] of a byte store: entries travel in the envelope that
// docs/wire-format.md describes. The store can do (batch, conditional writes,
// clear, measure) what the byte store can.
func Encode[K comparable, V any](b Bytes, c Codec[V]) *Encoded[K, V] {
	return EncodeWith(b, c, EncodeOptions[K]{})
}

// EncodeWith is [Encode] with options.
func EncodeWith[K comparable, V any](b Bytes, c Codec[V], o EncodeOptions[K]) *Encoded[K, V] {
	s := &Encoded[K, V]{bytes: b, codec: c, key: o.Key, transforms: transforms{o.Compression, o.Encryption}}
	s.parse = o.ParseKey
	if s.key == nil {
		s.key, s.invalid = keyText[K]()
		if keys, err := NewKeyCoder[K](); err == nil {
			s.parse = keys.Key
		}
	}
	if b == nil || c == nil {
		s.invalid = errors.New("terrace: Encode needs a byte store and a codec")
		return s
	}
	if err := s.transforms.validate(); err != nil {
		s.invalid = err
		return s
	}
	schema := o.Schema
	if schema == "" {
		schema = schemaOf[V](c.Name())
	}
	s.schema = schemaSum(schema)
	s.nilable = nilable(reflect.TypeFor[V]())
	s.batch, _ = AsBytesBatcher(b)
	s.swap, _ = AsBytesSwapper(b)
	s.clear, _ = AsClearer(b)
	s.measure, _ = AsMeasurer(b)
	s.track, _ = AsBytesTracker(b)
	return s
}

// Encoded is the [Store] that [Encode] makes.
type Encoded[K comparable, V any] struct {
	bytes      Bytes
	codec      Codec[V]
	key        func(K) string
	transforms transforms
	schema     uint32
	nilable    bool
	invalid    error

	batch   BytesBatcher
	swap    BytesSwapper
	clear   Clearer
	measure Measurer
	track   BytesTracker
	own     ownWrites
	parse   func(string) (K, error) // nil where texts cannot be undone
}

// Validate returns what is wrong with the composition, or nil.
func (s *Encoded[K, V]) Validate() error {
	if s.invalid != nil {
		return s.invalid
	}
	if v, ok := s.bytes.(Validator); ok {
		return v.Validate()
	}
	return nil
}

// Can tells which capabilities the byte store has.
func (s *Encoded[K, V]) Can(c Capability) bool {
	switch c {
	case CanBatch:
		return s.batch != nil
	case CanSwap, CanLease:
		return s.swap != nil
	case CanClear:
		return s.clear != nil
	case CanMeasure:
		return s.measure != nil
	case CanTrack:
		return s.track != nil
	default:
		return false
	}
}

// Local reports whether the byte store is in this process's memory.
func (s *Encoded[K, V]) Local() bool {
	l, ok := s.bytes.(Local)
	return ok && l.Local()
}

// Punctual reports whether the byte store is.
func (s *Encoded[K, V]) Punctual() bool {
	p, ok := s.bytes.(Punctual)
	return ok && p.Punctual()
}

// Forgetful reports whether the byte store is.
func (s *Encoded[K, V]) Forgetful() bool {
	f, ok := s.bytes.(Forgetful)
	return ok && f.Forgetful()
}

// Get implements [Store].
func (s *Encoded[K, V]) Get(ctx context.Context, key K) (*Entry[V], error) {
	e, _, err := s.GetVersion(ctx, key)
	return e, err
}

// GetVersion implements [Swapper].
func (s *Encoded[K, V]) GetVersion(ctx context.Context, key K) (*Entry[V], Version, error) {
	text, err := s.text(key)
	if err != nil {
		return nil, Version{}, err
	}
	b, err := s.bytes.Get(ctx, text)
	version := versionOf(b)
	if err != nil || b == nil {
		return nil, version, err
	}
	e, err := s.decode(text, b)
	return e, version, err
}

// Set implements [Store].
func (s *Encoded[K, V]) Set(ctx context.Context, key K, entry *Entry[V], ttl time.Duration) error {
	if entry == nil {
		return s.Delete(ctx, key)
	}
	text, err := s.text(key)
	if err != nil {
		return err
	}
	b, err := s.encode(text, entry, ttl)
	if err != nil {
		// The old value must not outlive a write that failed.
		return errors.Join(err, s.bytes.Delete(ctx, text))
	}
	s.own.note(text, b)
	return s.bytes.Set(ctx, text, b, ttl)
}

// SetIf implements [Swapper].
func (s *Encoded[K, V]) SetIf(ctx context.Context, key K, entry *Entry[V], ttl time.Duration, v Version) (bool, error) {
	if s.swap == nil {
		return false, errors.ErrUnsupported
	}
	text, err := s.text(key)
	if err != nil {
		return false, err
	}
	b, err := s.encode(text, entry, ttl)
	if err != nil || ttl <= 0 {
		// What is there goes all the same, if the condition holds.
		b = s.tombstone(text, time.Second)
		s.own.note(text, b)
		stored, swapErr := s.swap.SetIf(ctx, text, b, time.Second, v.bytes())
		return stored && err == nil, errors.Join(err, swapErr)
	}
	s.own.note(text, b)
	return s.swap.SetIf(ctx, text, b, ttl, v.bytes())
}

// Bury implements [Swapper].
func (s *Encoded[K, V]) Bury(ctx context.Context, key K, hold time.Duration) error {
	text, err := s.text(key)
	if err != nil {
		return err
	}
	b := s.tombstone(text, hold)
	s.own.note(text, b)
	return s.bytes.Set(ctx, text, b, hold)
}

// BuryIf implements [Swapper].
func (s *Encoded[K, V]) BuryIf(ctx context.Context, key K, hold time.Duration, v Version) (bool, error) {
	_, buried, err := s.swapMark(ctx, key, "", hold, v, noLease)
	return buried, err
}

// Lease implements [Leaser].
func (s *Encoded[K, V]) Lease(ctx context.Context, key K, hold time.Duration, v Version) (mark Version, won bool, err error) {
	return s.swapMark(ctx, key, "", hold, v, leaseMark)
}

// Renew implements [Leaser].
func (s *Encoded[K, V]) Renew(ctx context.Context, key K, hold time.Duration, mark Version) (next Version, won bool, err error) {
	return s.swapMark(ctx, key, "", hold, mark, renewedMark)
}

// Release implements [Leaser].
func (s *Encoded[K, V]) Release(ctx context.Context, key K, hold time.Duration, mark Version) error {
	_, _, err := s.swapMark(ctx, key, "", hold, mark, noLease)
	return err
}

// LeaseBeside implements [Leaser].
func (s *Encoded[K, V]) LeaseBeside(ctx context.Context, key K, life time.Duration, mark Version) (next Version, won bool, err error) {
	return s.swapMark(ctx, key, besideKey, life, mark, leaseMark)
}

// ReleaseBeside implements [Leaser].
func (s *Encoded[K, V]) ReleaseBeside(ctx context.Context, key K, mark Version) error {
	_, _, err := s.swapMark(ctx, key, besideKey, 0, mark, noLease)
	return err
}

// besideKey is put behind a key's text for what stands beside it. Nobody has a key that
// ends so: it is drawn at random.
const besideKey = "\x00lease\xd5\x1f\x8c\xa9\x02\xe7\x3b\xf6"

// markKind is what swapMark puts.
type markKind uint8

const (
	noLease     markKind = iota // a tombstone
	leaseMark                   // the mark of a lease
	renewedMark                 // with the time of the one in whose place it comes
)

// swapMark puts a mark, or with a ttl of zero nothing, in the place of a version.
func (s *Encoded[K, V]) swapMark(ctx context.Context, key K, beside string, ttl time.Duration, v Version, kind markKind) (mark Version, won bool, err error) {
	if s.swap == nil {
		return Version{}, false, errors.ErrUnsupported
	}
	text, err := s.text(key)
	if err != nil {
		return Version{}, false, err
	}
	text += beside
	b := s.mark(text, ttl, kind != noLease)
	if kind == renewedMark {
		keepTime(b, v.bytes())
		sealEnvelope(b, text)
	}
	if beside == "" {
		s.own.note(text, b)
	}
	won, err = s.swap.SetIf(ctx, text, b, ttl, v.bytes())
	return versionOf(b), won, err
}

// Delete implements [Store].
func (s *Encoded[K, V]) Delete(ctx context.Context, key K) error {
	text, err := s.text(key)
	if err != nil {
		return err
	}
	return s.bytes.Delete(ctx, text)
}

// GetMany implements [Batcher].
func (s *Encoded[K, V]) GetMany(ctx context.Context, keys []K) ([]*Entry[V], error) {
	if s.batch == nil {
		return nil, errors.ErrUnsupported
	}
	texts, err := s.texts(keys)
	if err != nil {
		return nil, err
	}
	values, err := s.batch.GetMany(ctx, texts)
	entries := make([]*Entry[V], len(keys))
	for i := range min(len(values), len(texts)) {
		if values[i] != nil {
			entries[i], _ = s.decode(texts[i], values[i])
		}
	}
	return entries, err
}

// SetMany implements [Batcher].
func (s *Encoded[K, V]) SetMany(ctx context.Context, keys []K, entries []*Entry[V], ttls []time.Duration) error {
	if s.batch == nil {
		return errors.ErrUnsupported
	}
	var failed []error
	var drop, texts []string
	var values [][]byte
	var lives []time.Duration
	for i, key := range keys {
		text, err := s.text(key)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		b, err := s.encode(text, entries[i], ttls[i])
		if err != nil {
			failed, drop = append(failed, err), append(drop, text)
			continue
		}
		s.own.note(text, b)
		texts, values, lives = append(texts, text), append(values, b), append(lives, ttls[i])
	}
	if len(drop) > 0 {
		failed = append(failed, s.batch.DeleteMany(ctx, drop))
	}
	if len(texts) > 0 {
		failed = append(failed, s.batch.SetMany(ctx, texts, values, lives))
	}
	return errors.Join(failed...)
}

// DeleteMany implements [Batcher].
func (s *Encoded[K, V]) DeleteMany(ctx context.Context, keys []K) error {
	if s.batch == nil {
		return errors.ErrUnsupported
	}
	texts, err := s.texts(keys)
	if err != nil {
		return err
	}
	return s.batch.DeleteMany(ctx, texts)
}

// Clear implements [Clearer].
func (s *Encoded[K, V]) Clear(ctx context.Context) error {
	if s.clear == nil {
		return errors.ErrUnsupported
	}
	return s.clear.Clear(ctx)
}

// Usage implements [Measurer].
func (s *Encoded[K, V]) Usage() Usage {
	if s.measure == nil {
		return Usage{Entries: -1, MaxEntries: -1, Cost: -1, MaxCost: -1, Evictions: -1, Rejections: -1}
	}
	return s.measure.Usage()
}

// Close implements [Store]; it closes the byte store.
func (s *Encoded[K, V]) Close() error {
	if s.bytes == nil {
		return nil
	}
	return s.bytes.Close()
}

func (s *Encoded[K, V]) text(key K) (text string, err error) {
	if s.invalid != nil {
		return "", s.invalid
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: its comparison or its Key function panicked: %v", ErrBadKey, p)
		}
	}()
	if key != key { // NaN, alone or inside a struct
		return "", ErrBadKey
	}
	return s.key(key), nil
}

func (s *Encoded[K, V]) texts(keys []K) ([]string, error) {
	texts := make([]string, len(keys))
	for i, key := range keys {
		text, err := s.text(key)
		if err != nil {
			return nil, err
		}
		texts[i] = text
	}
	return texts, nil
}

func (s *Encoded[K, V]) encode(key string, e *Entry[V], ttl time.Duration) (b []byte, err error) {
	now := readClocks()
	meta := e.Meta()
	meta.UsableUntil = min(meta.UsableUntil, now.mono.Add(ttl))
	env := envelope{meta: meta, isNil: !meta.Absent && s.nilable && isNil(e.value)}
	b = appendEnvelope(make([]byte, 0, 256), env, s.schema, now)
	if !meta.Absent && !env.isNil {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%w: codec %s panicked: %v\n%s", ErrUnencodable, s.codec.Name(), p, debug.Stack())
			}
		}()
		payload := len(b)
		if b, err = s.codec.Append(b, e.value); err != nil {
			return nil, fmt.Errorf("%w: codec %s: %w", ErrUnencodable, s.codec.Name(), err)
		}
		if b, err = s.transforms.compress(b, payload); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnencodable, err)
		}
	}
	if b, err = s.transforms.seal(b, key); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnencodable, err)
	}
	sealEnvelope(b, key)
	return b, nil
}

func (s *Encoded[K, V]) tombstone(key string, hold time.Duration) []byte {
	return s.mark(key, hold, false)
}

// mark returns what stands under a key without a value: the tombstone of a deletion, or
// that of a lease.
func (s *Encoded[K, V]) mark(key string, hold time.Duration, lease bool) []byte {
	now := readClocks()
	env := envelope{tombstone: true, lease: lease, meta: Meta{LoadedAt: now.mono, FreshUntil: now.mono, UsableUntil: now.mono.Add(hold)}}
	b := appendEnvelope(make([]byte, 0, envelopeSize), env, s.schema, now)
	sealEnvelope(b, key)
	return b
}

// decode returns nil without an error for a tombstone.
func (s *Encoded[K, V]) decode(key string, b []byte) (e *Entry[V], err error) {
	env, payload, err := parseEnvelope(b, key, s.schema, readClocks(), s.transforms)
	if err != nil || env.tombstone {
		return nil, err
	}
	var value V
	switch {
	case env.meta.Absent || env.isNil && s.nilable:
	case env.isNil:
		return nil, &UnreadableError{Reason: "type"}
	default:
		defer func() {
			if p := recover(); p != nil {
				e, err = nil, &UnreadableError{Reason: "decode", Err: fmt.Errorf("codec %s panicked: %v", s.codec.Name(), p)}
			}
		}()
		if value, err = s.codec.Decode(payload); err != nil {
			return nil, &UnreadableError{Reason: "decode", Err: err}
		}
	}
	return NewEntry(value, env.meta), nil
}

func nilable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return true
	default:
		return false
	}
}

// isNil tells nil from empty, which not every codec does. Only a nil of V's own
// kind counts: in an interface that holds a typed nil there is something.
func isNil[V any](v V) bool {
	return reflect.ValueOf(&v).Elem().IsNil()
}
