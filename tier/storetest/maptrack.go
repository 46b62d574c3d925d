package storetest

import (
	"context"
	"errors"

	"github.com/terracecache/terrace/tier"
)

// mapTracking tells a handler what changes on a [MapBytes]'s server. Its fields are
// guarded by the server's mu.
type mapTracking struct {
	client *MapBytes
	*teller[tier.TrackHandler[string]]
}

var errMapCut = errors.New("storetest: the tracking is cut off")

// Track implements [tier.BytesTracker].
func (m *MapBytes) Track(h tier.TrackHandler[string]) (stop func(), err error) {
	s := m.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.closed.Load() {
		return nil, tier.ErrClosed
	}
	t := &mapTracking{m, newTeller(h)}
	if s.tracks == nil {
		s.tracks = make(map[*mapTracking]struct{})
	}
	s.tracks[t] = struct{}{}
	if !m.isCut {
		t.put(tier.TrackHandler[string].Connected)
	}
	return func() {
		s.mu.Lock()
		delete(s.tracks, t)
		s.mu.Unlock()
		t.close()
	}, nil
}

// CutTracking has the client's trackings lose what changes until RestoreTracking, and
// tells their handlers.
func (m *MapBytes) CutTracking() {
	m.setCut(true, func(h tier.TrackHandler[string]) { h.Lost(errMapCut) })
}

// RestoreTracking connects the client's trackings again.
func (m *MapBytes) RestoreTracking() { m.setCut(false, tier.TrackHandler[string].Connected) }

func (m *MapBytes) setCut(cut bool, tell func(tier.TrackHandler[string])) {
	m.server.mu.Lock()
	defer m.server.mu.Unlock()
	if m.isCut == cut {
		return
	}
	m.isCut = cut
	for t := range m.server.tracks {
		if t.client == m {
			t.put(tell)
		}
	}
}

// Heads implements [tier.BytesTracker].
func (m *MapBytes) Heads(ctx context.Context, keys []string) ([][]byte, error) {
	values, err := m.GetMany(ctx, keys)
	for i, v := range values {
		values[i] = v[:min(len(v), tier.HeadSize)]
	}
	return values, err
}

// stopTracks ends the client's trackings.
func (m *MapBytes) stopTracks() {
	m.server.mu.Lock()
	var ended []*mapTracking
	for t := range m.server.tracks {
		if t.client == m {
			delete(m.server.tracks, t)
			ended = append(ended, t)
		}
	}
	m.server.mu.Unlock()
	for _, t := range ended {
		t.close()
	}
}

// changed tells all who track the server. It is called with mu held.
func (s *mapServer) changed(key string) {
	s.tell(func(h tier.TrackHandler[string]) { h.Changed([]string{key}) })
}

func (s *mapServer) tell(call func(tier.TrackHandler[string])) {
	for t := range s.tracks {
		if !t.client.isCut {
			t.send(call)
		}
	}
}
