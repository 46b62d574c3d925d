package policy

// Fixed serves an entry while it is fresh and loads a new one when it is stale:
// the reader that comes first after the end waits for the load.
type Fixed struct{}

// Name implements [Named].
func (Fixed) Name() string { return "fixed" }

// Decide implements [Strategy].
func (Fixed) Decide(r Reading) Decision {
	if r.FreshFor > 0 {
		return Serve
	}
	return Load
}
