package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/terracecache/terrace/tier"
)

// httpOrigin is a real origin: a GET for each value. The body of a 2xx is the value,
// 404 and 410 say that there is none, and all else is a failure.
type httpOrigin struct {
	url    string
	client *http.Client
}

// keyMark is where a URL has the key; without it the key is appended to the path.
const keyMark = "{key}"

func newHTTPOrigin(rawURL string, connections int) *httpOrigin {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = connections, connections
	return &httpOrigin{url: rawURL, client: &http.Client{Transport: transport}}
}

// of returns the URL of a key.
func (h *httpOrigin) of(key string) string {
	escaped := url.PathEscape(key)
	if strings.Contains(h.url, keyMark) {
		return strings.ReplaceAll(h.url, keyMark, escaped)
	}
	base, query, has := strings.Cut(h.url, "?")
	full := strings.TrimSuffix(base, "/") + "/" + escaped
	if has {
		full += "?" + query
	}
	return full
}

func (h *httpOrigin) load(ctx context.Context, o *origin, key string, began tier.Instant, running int64) ([]byte, error) {
	raise(&o.peak, running)
	body, err := h.get(ctx, key)
	if err != nil {
		return nil, err
	}
	return stamped(key, began, body), nil
}

// get asks for a key. Its errors do not quote the URL, which may hold secrets.
func (h *httpOrigin) get(ctx context.Context, key string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.of(key), nil)
	if err != nil {
		return nil, errors.New("malformed URL")
	}
	response, err := h.client.Do(request)
	if quoting := (*url.Error)(nil); errors.As(err, &quoting) {
		err = quoting.Err
	}
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxValueSize+1))
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusGone:
		return nil, tier.ErrAbsent
	case response.StatusCode/100 != 2:
		return nil, fmt.Errorf("the origin answers %s", response.Status)
	case len(body) > maxValueSize:
		return nil, fmt.Errorf("the origin's answer is larger than %d bytes", maxValueSize)
	}
	return body, nil
}

func (h *httpOrigin) close() { h.client.CloseIdleConnections() }

// validateURL returns what is wrong with an origin's URL.
func validateURL(rawURL string) error {
	u, err := url.Parse(strings.ReplaceAll(rawURL, keyMark, "key"))
	switch {
	case err != nil:
		return errors.New("--origin: malformed URL") // the error itself quotes a password
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("--origin: a URL of %q: want http or https", u.Scheme)
	case u.Host == "":
		return errors.New("--origin: the URL names no host")
	}
	return nil
}

// urlLabel is an origin's URL without secrets.
func urlLabel(rawURL string) string {
	u, err := url.Parse(strings.ReplaceAll(rawURL, keyMark, "KEY"))
	if err != nil {
		return "a URL"
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// originAnswers returns nil when the origin is none of a URL, or answers soon, whatever
// it says.
func (s *settings) originAnswers(ctx context.Context) error {
	if !strings.Contains(s.Origin, "://") {
		return nil
	}
	h := newHTTPOrigin(s.Origin, 1)
	defer h.close()
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.of("probe"), nil)
	if err != nil {
		return errors.New("--origin: malformed URL")
	}
	response, err := h.client.Do(request)
	if quoting := (*url.Error)(nil); errors.As(err, &quoting) {
		err = quoting.Err
	}
	if err != nil {
		return fmt.Errorf("--origin: %s does not answer: %w", urlLabel(s.Origin), err)
	}
	return response.Body.Close()
}
