package trace

// lirs is a decimal block number a line. A star marks a place and is no request. Source:
// the traces of Jiang, Zhang, "LIRS", SIGMETRICS 2002.
type lirs struct{}

func (lirs) fields() Fields { return Fields{} }

func (lirs) parse(line []byte, to *run) error {
	if len(line) == 1 && line[0] == '*' {
		return nil
	}
	block, err := whole(line, "block number")
	if err != nil {
		return err
	}
	return to.one(Request{Key: block})
}
