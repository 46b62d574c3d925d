// Command bench compares combinations of cache tiers, each under several refresh
// policies, on one workload, and prints a table to decide from:
//
//	go run ./bench
//	go run ./bench --redis redis://localhost:6379 --rate 10000 --skew 1.1
//	go run ./bench --json - | jq '.rows[] | {combination, policy, hit_ratio}'
//
// docs/bench.md tells what each figure means and how it is measured.
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
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
