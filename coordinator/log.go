package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/terracecache/terrace/tier"
)

// eventLog logs what happens in the background, at most once a second for each
// kind, so that a tier that is down does not fill the disk. The line that comes
// through tells how many were held back before it.
type eventLog struct {
	logger *slog.Logger // nil: slog.Default at the time of the event
	name   string

	mu   sync.Mutex
	last map[string]*lastEvent
}

type lastEvent struct {
	at   tier.Instant
	held int
}

const logInterval = time.Second

func newEventLog(l *slog.Logger, name string) *eventLog {
	return &eventLog{logger: l, name: name, last: make(map[string]*lastEvent)}
}

// warn logs an event. The kind and the tier together are what is held back; both
// come from a small fixed set.
func (l *eventLog) warn(kind, tierName string, err error) {
	l.mu.Lock()
	now := tier.Now()
	e := l.last[kind+"\x00"+tierName]
	if e == nil {
		e = &lastEvent{at: now.Add(-logInterval)}
		l.last[kind+"\x00"+tierName] = e
	}
	if now.Sub(e.at) < logInterval {
		e.held++
		l.mu.Unlock()
		return
	}
	held := e.held
	e.at, e.held = now, 0
	l.mu.Unlock()

	// An error or a handler that panics must not take the process down from the
	// background.
	defer func() { _ = recover() }()

	attrs := []slog.Attr{slog.String("cache", l.name)}
	if tierName != "" {
		attrs = append(attrs, slog.String("tier", tierName))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", textOf(err)))
	}
	if held > 0 {
		attrs = append(attrs, slog.Int("held_back", held))
	}
	logger := l.logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.LogAttrs(context.Background(), slog.LevelWarn, "terrace: "+kind, attrs...)
}

// textOf returns the error's text without the keys and values that errors of ours
// may hold.
func textOf(err error) string {
	var cycle *CycleError
	var panicked *PanicError
	switch {
	case errors.As(err, &cycle):
		return ErrCycle.Error()
	case errors.As(err, &panicked):
		return fmt.Sprintf("panic of a %T\n\n%s", panicked.Value, panicked.Stack)
	default:
		return err.Error()
	}
}
