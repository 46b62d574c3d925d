// Package failure is what calls of remote stores come to that fail.
package failure

import "errors"

// Set holds each kind of error once: a server that is out of memory says so for
// every key. Its zero value is empty. It is not for concurrent use.
type Set struct {
	seen     map[string]bool
	distinct []error
}

// Add adds the error unless it is nil or reads as one that is there.
func (s *Set) Add(err error) {
	if err == nil || s.seen[err.Error()] {
		return
	}
	if s.seen == nil {
		s.seen = make(map[string]bool)
	}
	s.seen[err.Error()] = true
	s.distinct = append(s.distinct, err)
}

// Join returns the errors as one, or nil if there are none.
func (s *Set) Join() error {
	if len(s.distinct) == 1 {
		return s.distinct[0]
	}
	return errors.Join(s.distinct...)
}
