//go:build !unix

package lone

import "net"

// poll is not for this system.
type poll struct{ net.Conn }

func newPoll(net.Conn) *poll { return nil }
