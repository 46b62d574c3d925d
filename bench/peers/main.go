// Command peers measures Terrace and other cache libraries by the same work, in turn,
// and prints a table for each group of workloads:
//
//	go run .
//	go run . --groups hit-hot,hit-zipf --names terrace,otter
//	go run . --json - | jq '.[] | select(.group == "hit-zipf") | {name, goroutines, ns_per_op}'
//
// It is a module of its own, so that those who use Terrace do not get its rivals into
// their module graphs. docs/peers.md tells what is compared and how.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	endRequests()
	os.Exit(code)
}
