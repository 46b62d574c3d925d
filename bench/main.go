// Command bench compares combinations of cache tiers, each under several refresh
// policies, or the caches of a configuration document, on one workload, and prints a
// table to decide from:
//
//	go run ./bench
//	go run ./bench --redis redis://localhost:6379 --rate 10000 --skew 1.1
//	go run ./bench --json - | jq '.rows[] | {combination, policy, hit_ratio}'
//	go run ./bench validate caches.yaml
//	go run ./bench compare --config caches.yaml
//	go run ./bench trace --sizes 500,10% multi1.trace.gz
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
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
