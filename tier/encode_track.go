package tier

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Track implements [Tracker]. Changes of what is no key of this store's are not told: of
// a text that is that of no key of the type nothing was ever read. With a Key function
// of one's own it needs ParseKey too.
func (s *Encoded[K, V]) Track(h TrackHandler[K]) (stop func(), err error) {
	if s.invalid != nil {
		return nil, s.invalid
	}
	if s.track == nil {
		return nil, errors.ErrUnsupported
	}
	if s.parse == nil {
		return nil, fmt.Errorf("terrace: track: with EncodeOptions.Key give ParseKey, which undoes it: %w", errors.ErrUnsupported)
	}
	s.own.remember()
	return s.track.Track(&keyTranslator[K]{TrackHandler: h, key: s.keyOf})
}

// Wrote implements [Tracker].
func (s *Encoded[K, V]) Wrote(key K) bool {
	text, err := s.text(key)
	return err == nil && s.own.has(text)
}

// Writers implements [Tracker].
func (s *Encoded[K, V]) Writers(ctx context.Context, keys []K) ([]Writer, error) {
	if s.track == nil {
		return nil, errors.ErrUnsupported
	}
	texts, err := s.texts(keys)
	if err != nil {
		return nil, err
	}
	heads, err := s.track.Heads(ctx, texts)
	if err != nil {
		return nil, err
	}
	if len(heads) != len(keys) {
		return nil, fmt.Errorf("terrace: track: %d heads of %d keys", len(heads), len(keys))
	}
	writers := make([]Writer, len(keys))
	for i, head := range heads {
		writers[i] = s.own.writer(texts[i], head)
	}
	return writers, nil
}

// keyOf returns the key that has the text, or false where none has.
func (s *Encoded[K, V]) keyOf(text string) (key K, ok bool) {
	if strings.HasSuffix(text, besideKey) {
		return key, false // that a key is loaded changes nothing
	}
	defer func() {
		if recover() != nil { // ParseKey is the user's
			ok = false
		}
	}()
	key, err := s.parse(text)
	if err != nil {
		return key, false
	}
	again, err := s.text(key)
	return key, err == nil && again == text
}

// keyTranslator tells a handler of keys where its store tells of texts.
type keyTranslator[K comparable] struct {
	TrackHandler[K]
	key func(text string) (K, bool)
}

func (t *keyTranslator[K]) Changed(texts []string) {
	keys := make([]K, 0, len(texts))
	for _, text := range texts {
		if key, ok := t.key(text); ok {
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 {
		t.TrackHandler.Changed(keys)
	}
}
