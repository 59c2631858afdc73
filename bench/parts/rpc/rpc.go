// Package rpc is a part of the bench: messages that are sent back over frames of our own, gRPC, NATS and ZeroMQ, a change at
// a thousand subscribers of each wire, and a record as Protocol Buffers.
package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/bench/parts/claims"
	"understudy/bench/parts/feed"
	"understudy/bench/parts/rpc/echo"
	"understudy/bench/rig"
)

// way is a protocol, and how its clients are connected.
type way struct {
	name     string
	kind     echo.Kind
	isShared bool
}

// The first two are ours, the next two those of gRPC in the same order.
var ways = []way{
	{"frames, a connection each", echo.Frames, false}, {"frames, one connection", echo.Frames, true},
	{"gRPC, a connection each", echo.GRPC, false}, {"gRPC, one connection", echo.GRPC, true},
	{"NATS, a connection each", echo.NATS, false}, {"NATS, one connection", echo.NATS, true},
	{"ZeroMQ, a connection each", echo.ZMQ, false},
}

// clients are the numbers of clients. The targets are for the last.
var clients = []int{1, 4, 16}

// cell is what a way has reached with a number of clients, in each round.
type cell struct{ rate, p50, p99, cpu []float64 }

// Measure measures the messages, then the subscribers, then the record.
func Measure(ctx context.Context, r *rig.Run) error {
	if err := measureEchoes(ctx, r); err != nil {
		return err
	}
	if err := feed.MeasureWires(ctx, r); err != nil {
		return err
	}
	return claims.MeasureRecord(r)
}

// measureEchoes measures all ways in turns. The servers run all the time, and wait while another is measured.
func measureEchoes(ctx context.Context, r *rig.Run) (err error) {
	servers := map[echo.Kind]*rig.Child{}
	defer func() {
		for _, c := range servers {
			err = errors.Join(err, c.Stop())
		}
	}()
	for _, w := range ways {
		if servers[w.kind] == nil {
			if servers[w.kind], err = rig.Start(ctx, r.Dir, "rpc-"+string(w.kind), "rpc  ", r.Self, "rpc", "-kind", string(w.kind)); err != nil {
				delete(servers, w.kind)
				return err
			}
		}
	}
	cells := make([][]cell, len(ways))
	for i := range cells {
		cells[i] = make([]cell, len(clients))
	}
	for round := range r.Times(9, 1) {
		for k := range ways {
			i := (k + round) % len(ways)
			for n := range clients {
				if err := measureCell(ctx, r, ways[i], servers[ways[i].kind], clients[n], &cells[i][n]); err != nil {
					return fmt.Errorf("%s: %w", ways[i].name, err)
				}
			}
		}
	}
	report(r, cells)
	return nil
}

// measureCell adds the result of one way and number of clients.
func measureCell(ctx context.Context, r *rig.Run, w way, server *rig.Child, clients int, c *cell) error {
	before, err := server.Cpu()
	if err != nil {
		return err
	}
	got, err := echo.Ask(ctx, w.kind, w.isShared, server.Addresses["rpc"], clients, r.Long(500*time.Millisecond))
	if err != nil {
		return err
	}
	after, err := server.Cpu()
	if err != nil {
		return err
	}
	c.rate, c.p50, c.p99 = append(c.rate, got.Rate), append(c.p50, rig.Us(got.P50)), append(c.p99, rig.Us(got.P99))
	c.cpu = append(c.cpu, (after-before+got.Cpu).Seconds()/float64(got.Answers)*100_000)
	return nil
}

// report prints the cells, and compares frames with gRPC connected in the same way.
func report(r *rig.Run, cells [][]cell) {
	table := [][]string{{"64 bytes sent back", "clients", "a second", "quartiles", "p50 us", "p99 us", "CPU of 100,000, s"}}
	for i, w := range ways {
		for n, c := range cells[i] {
			table = append(table, []string{w.name, fmt.Sprint(clients[n]), rig.Figure(rig.Median(c.rate)),
				rig.Figure(rig.Quantile(c.rate, 0.25)) + " to " + rig.Figure(rig.Quantile(c.rate, 0.75)),
				rig.Figure(rig.Median(c.p50)), rig.Figure(rig.Median(c.p99)), rig.Figure(rig.Median(c.cpu))})
		}
	}
	r.Table(table)
	last := len(clients) - 1
	for i, name := range []string{"a connection each", "one connection"} {
		ours, theirs := cells[i][last], cells[i+2][last]
		var rates, tails []float64
		for round := range ours.rate {
			rates = append(rates, ours.rate[round]/theirs.rate[round])
			tails = append(tails, ours.p99[round]/theirs.p99[round])
		}
		r.AtLeast("16 clients, "+name+": frames of gRPC's rate", rig.Quantile(rates, 0.25), 4, "")
		r.AtMost("and their 99 % of gRPC's", rig.Quantile(tails, 0.75), 1, "")
	}
	r.Say("")
}
