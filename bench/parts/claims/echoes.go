package claims

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy/bench/parts/claims/echo"
	"understudy/bench/rig"
)

var oneLoop = claim{
	name: "one-loop-or-workers", systems: "19, 20",
	says:    "One REP answers more than a ROUTER with 16 workers, and that more than gRPC; why is a mystery",
	figure:  "16 clients, messages a second: REP 37,276, ROUTER 22,333, gRPC 17,094",
	measure: measureEchoes,
}

// topology is a server of the experiment.
type topology struct{ name, kind string }

var topologies = []topology{
	{"one loop, as REP", echo.One}, {"16 workers by ipc", echo.IPC}, {"16 workers in the process", echo.Inproc}, {"gRPC", echo.GRPC},
}

// measureEchoes measures all topologies on one core and on two, without work and with a wait of 1 ms, with 1, 16 and 64
// clients.
func measureEchoes(ctx context.Context, r *rig.Run) (finding, error) {
	f := finding{title: "Messages a second, 16 clients, server on one core",
		table: [][]string{{"server", "cores", "work", "1 client", "16 clients", "64 clients", "p99 of 16, ms", "CPU of 100,000, s"}},
		bars:  []rig.Bar{article("article: REP", 37276), article("article: ROUTER, 16 workers", 22333), article("article: gRPC", 17094)}}
	type point struct {
		kind  string
		cores int
		work  time.Duration
	}
	rate := map[point]float64{}
	for _, work := range []time.Duration{0, time.Millisecond} {
		for _, cores := range []int{1, 2} {
			rows, err := measureTopologies(ctx, r, cores, work)
			if err != nil {
				return finding{}, err
			}
			for i, t := range topologies {
				of16 := rig.Median(rows[i].rates[1])
				rate[point{t.kind, cores, work}] = of16
				row := []string{t.name, fmt.Sprint(cores), work.String()}
				for _, rates := range rows[i].rates {
					row = append(row, rig.Figure(rig.Median(rates)))
				}
				f.table = append(f.table, append(row, rig.Figure(rig.Median(rows[i].p99)), rig.Figure(rig.Median(rows[i].cpu))))
				if cores == 1 {
					name := t.name
					if work > 0 {
						name += ", " + work.String()
					}
					f.bars = append(f.bars, bar(name, rows[i].rates[1]))
				}
			}
		}
	}
	one, ipc, in := rate[point{echo.One, 1, 0}], rate[point{echo.IPC, 1, 0}], rate[point{echo.Inproc, 1, 0}]
	grpc, busyOne := rate[point{echo.GRPC, 1, 0}], rate[point{echo.One, 1, time.Millisecond}]
	busyIPC := rate[point{echo.IPC, 1, time.Millisecond}]
	f.ours = fmt.Sprintf("one loop %s, workers by ipc %s, in the process %s, gRPC %s; with 1 ms of work one loop %s, workers %s", rig.Figure(one),
		rig.Figure(ipc), rig.Figure(in), rig.Figure(grpc), rig.Figure(busyOne), rig.Figure(busyIPC))
	f.verdict = judge(one > ipc && ipc > grpc, heldThen)
	f.text = fmt.Sprintf("The article's server has one core, its messages need no work, and its workers, which it calls in-process, are reached through "+
		"sockets of type ipc. Then workers only add two ways through the kernel to each message: with ipc they reach %s of one loop, in the process %s. "+
		"As soon as a message waits 1 ms, as for a disk, one loop answers one after the other, and 16 workers reach %s times as many.\n\n"+
		"The topologies are those of ZeroMQ, over frames of our own: the libraries are not compared here. Each client has one message under way. "+
		"The server is a process of its own, on one core or on both, and shares the machine with the clients.",
		rig.Figure(ipc/one), rig.Figure(in/one), rig.Figure(busyIPC/busyOne))
	return f, nil
}

// echoClients are the numbers of clients. The second is the one of the article's figures.
var echoClients = []int{1, 16, 64}

// echoed is what a topology has reached in each round: answers a second by number of clients, and with 16 clients the
// milliseconds of 99 % and the seconds of CPU for 100,000 answers.
type echoed struct {
	rates    [3][]float64
	p99, cpu []float64
}

// measureTopologies starts a server of each topology and measures them in turns.
func measureTopologies(ctx context.Context, r *rig.Run, cores int, work time.Duration) (rows []echoed, err error) {
	rows = make([]echoed, len(topologies))
	var servers []*rig.Child
	defer func() {
		for _, c := range servers {
			err = errors.Join(err, c.Stop())
		}
	}()
	for _, t := range topologies {
		c, err := rig.Start(ctx, r.Dir, "echo-"+t.kind, "echo  ", "taskset", "-c", fmt.Sprintf("0-%d", cores-1), r.Self, "echo",
			"-kind", t.kind, "-work", work.String())
		if err != nil {
			return nil, err
		}
		servers = append(servers, c)
	}
	long := r.Long(400 * time.Millisecond)
	for round := range r.Times(5, 1) {
		for k := range topologies {
			i := (k + round) % len(topologies)
			for n, clients := range echoClients {
				before, err := servers[i].Cpu()
				if err != nil {
					return nil, err
				}
				got, err := echo.Ask(ctx, topologies[i].kind, servers[i].Addresses["echo"], clients, long)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", topologies[i].name, err)
				}
				after, err := servers[i].Cpu()
				if err != nil {
					return nil, err
				}
				if rows[i].rates[n] = append(rows[i].rates[n], got.Rate); n == 1 {
					rows[i].p99 = append(rows[i].p99, rig.Ms(got.P99))
					rows[i].cpu = append(rows[i].cpu, (after-before).Seconds()/(got.Rate*long.Seconds())*100_000)
				}
			}
		}
	}
	return rows, nil
}
