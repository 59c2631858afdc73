// Lane: what the express lane is worth with many keys, a masked role, cold requests beside it
// and connections that wait.

package express

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"understudy/bench/rig"
)

// MeasureLane measures the lane beside itself.
func MeasureLane(ctx context.Context, r *rig.Run) error {
	for _, one := range []func(context.Context, *rig.Run) error{keys, masked, cold, idle} {
		if err := one(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// aim asks as a program does that has a token.
func aim(g *rig.Rig, token string, clients int, long time.Duration, uris ...string) rig.Target {
	basic := base64.StdEncoding.EncodeToString([]byte(rig.Account + ":" + token))
	return rig.Target{URL: g.Serve.Addresses["twilio"] + uris[0], Headers: []string{"Authorization: Basic " + basic, "Accept-Encoding: gzip"},
		Clients: clients, Long: long, URIs: uris}
}

// pair measures two loads in turns, the one that goes first changing, and gives how many times
// as many requests a second the second had.
func pair(ctx context.Context, r *rig.Run, g *rig.Rig, names [2]string, first, second rig.Target) (ratios []float64, err error) {
	d := r.FindDriver()
	rows := [][]string{{names[0] + ": requests/s", "CPU us each", names[1], "CPU us each", "ratio"}}
	for round := range r.Times(9, 2) {
		var got [2]rig.Measured
		for i := range got {
			n := (i + round) % 2
			if got[n], err = d.Measure(ctx, g.Serve, [2]rig.Target{first, second}[n]); err != nil {
				return nil, err
			}
		}
		ratios = append(ratios, got[1].Rate/got[0].Rate)
		row := []string{}
		for _, m := range got {
			row = append(row, fmt.Sprintf("%.0f", m.Rate), fmt.Sprintf("%.1f", float64(m.Each)/1e3))
		}
		rows = append(rows, append(row, rig.Figure(ratios[round])))
	}
	r.Table(rows)
	return ratios, nil
}

// calls starts a rig in front of an API with so many calls, and gives the addresses of each.
func calls(ctx context.Context, r *rig.Run, n int, extra string) (g *rig.Rig, uris []string, err error) {
	g, err = r.Rig(ctx, rig.Setup{Records: n, Mirror: "newest: 2h, older: 2h, settled_age: 24h, default_age: 24h", Settings: []string{"rate: 100000", "concurrency: 20"}, Extra: extra})
	if err != nil {
		return nil, nil, err
	}
	direct := g.Direct()
	defer direct.Close()
	_, err = direct.Walk(ctx, rig.Calls+"?PageSize=1000", n, func(a rig.Answer) {
		for _, part := range strings.Split(string(a.Body), `"sid":"`)[1:] {
			uris = append(uris, strings.TrimSuffix(rig.Calls, ".json")+"/"+part[:strings.IndexByte(part, '"')]+".json")
		}
	})
	if err != nil {
		return nil, nil, errors.Join(err, g.Close())
	}
	return g, uris, nil
}

// hold asks for each address once.
func hold(ctx context.Context, g *rig.Rig, uris []string) error {
	through := g.Through()
	defer through.Close()
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		wg.Go(func() {
			for at := next.Add(1) - 1; at < int64(len(uris)) && errs[i] == nil; at = next.Add(1) - 1 {
				_, errs[i] = through.Page(ctx, uris[at])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// keys asks for one key, and for ten and for a hundred thousand at random.
func keys(ctx context.Context, r *rig.Run) (err error) {
	most := r.Size(100_000, 100)
	g, uris, err := calls(ctx, r, most, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	held := 0
	for _, n := range []int{most / 10, most} {
		if err := hold(ctx, g, uris[held:n]); err != nil {
			return err
		}
		held = n
		if err := atRandom(ctx, r, g, uris[:n]); err != nil {
			return err
		}
	}
	return nil
}

func atRandom(ctx context.Context, r *rig.Run, g *rig.Rig, uris []string) error {
	one, all := aim(g, rig.OurToken, 16, r.Long(4*time.Second), uris[0]), aim(g, rig.OurToken, 16, r.Long(4*time.Second), uris...)
	before := all
	before.Long = r.Long(20 * time.Second) // each is asked more than once
	if _, err := r.FindDriver().Run(ctx, before); err != nil {
		return err
	}
	if err := g.Calm(ctx); err != nil {
		return err
	}
	from, err := g.Counted(ctx)
	if err != nil {
		return err
	}
	ratios, err := pair(ctx, r, g, [2]string{"one key", fmt.Sprintf("%d keys", len(uris))}, one, all)
	if err != nil {
		return err
	}
	to, err := g.Counted(ctx)
	if err != nil {
		return err
	}
	r.Say("%d pages are held in memory in %.1f of %.1f MiB; %.1f %% of the answers came from the lane", to.Hot.Pages, float64(to.Hot.Bytes)/rig.Mib,
		float64(to.Hot.Limit)/rig.Mib, 100*float64(to.Faces["twilio"].Express-from.Faces["twilio"].Express)/float64(max(1, to.Requests-from.Requests)))
	r.AtLeast(fmt.Sprintf("requests a second, lower quartile, %d keys at random", len(uris)), rig.Quantile(ratios, 0.25), 0.8, "of one key's")
	r.Say("")
	return nil
}

// masked asks as a role that sees all and as one that does not.
func masked(ctx context.Context, r *rig.Run) (err error) {
	g, err := r.Rig(ctx, rig.Setup{Mirror: "newest: 2h, older: 2h, settled_age: 24h"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	uri := rig.Calls + "?PageSize=50"
	if _, _, err := rig.Stored(ctx, g, uri); err != nil {
		return err
	}
	all, support := aim(g, rig.OurToken, 16, r.Long(4*time.Second), uri), aim(g, rig.SupportToken, 16, r.Long(4*time.Second), uri)
	ratios, err := pair(ctx, r, g, [2]string{"sees all", "masked"}, all, support)
	if err != nil {
		return err
	}
	r.AtLeast("requests a second, lower quartile, a masked role", rig.Quantile(ratios, 0.25), 0.9, "of the role's that sees all")
	r.Say("")
	return nil
}

// The paced load: so many clients, each with a request so often, if the one before is answered.
const (
	pacedClients = 100
	pace         = 20 * time.Millisecond
)

// cold asks for one page at a pace, and at the same pace when one request in a hundred is for a
// list that was not asked for before, which takes upstream a second.
func cold(ctx context.Context, r *rig.Run) (err error) {
	g, err := r.Rig(ctx, rig.Setup{Latency: time.Second, Mirror: "newest: 2h, older: 2h, settled_age: 24h", Settings: []string{"rate: 1000", "concurrency: 200"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if _, _, err := rig.Stored(ctx, g, rig.Calls+"?PageSize=50"); err != nil {
		return err
	}
	rows, ratios := [][]string{{"p99 of warm answers, ms", "all warm", "1 % cold", "ratio"}}, []float64{}
	for round := range r.Times(9, 1) {
		var p99 [2]time.Duration
		for i := range p99 {
			n := (i + round) % 2
			took, err := paced(ctx, g, r.Long(4*time.Second), n == 1, fmt.Sprint(round))
			if err != nil {
				return err
			}
			p99[n] = rig.Quantile(took, 0.99)
		}
		ratios = append(ratios, float64(p99[1])/float64(max(1, p99[0])))
		rows = append(rows, []string{fmt.Sprintf("round %d", round+1), rig.Figure(rig.Ms(p99[0])), rig.Figure(rig.Ms(p99[1])), rig.Figure(ratios[round])})
	}
	r.Table(rows)
	r.AtMost("p99 of warm answers, upper quartile, with 1 % cold", rig.Quantile(ratios, 0.75), 2, "of all warm")
	r.Say("")
	return nil
}

// paced gives how long the warm answers took.
func paced(ctx context.Context, g *rig.Rig, long time.Duration, cold bool, round string) (all []time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	w := g.Through()
	defer w.Close()
	took, errs := make([][]time.Duration, pacedClients), make([]error, pacedClients)
	var n atomic.Int64
	var wg sync.WaitGroup
	for i := range took {
		wg.Go(func() {
			_ = rig.Pause(ctx, pace*time.Duration(i)/pacedClients)
			for tick := time.NewTicker(pace); errs[i] == nil; {
				select {
				case <-ctx.Done():
					tick.Stop()
					return
				case <-tick.C:
				}
				uri, at := rig.Calls+"?PageSize=50", n.Add(1)
				isCold := cold && at%100 == 0
				if isCold {
					uri += fmt.Sprintf("&To=%%2B1555%s%06d", round, at)
				}
				a, err := w.Page(context.WithoutCancel(ctx), uri)
				if errs[i] = err; !isCold {
					took[i] = append(took[i], a.Took)
				}
			}
		})
	}
	wg.Wait()
	for _, one := range took {
		all = append(all, one...)
	}
	return all, errors.Join(errs...)
}

// idle opens connections that ask once and then wait, while other clients ask.
func idle(ctx context.Context, r *rig.Run) (err error) {
	g, uris, err := calls(ctx, r, 50, "limits: {connections: 12000}")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	at := aim(g, rig.OurToken, 1, 0, uris[0])
	others := aim(g, rig.OurToken, 16, r.Long(2*time.Second), uris[0])
	others.Headers = append(others.Headers, "Cache-Control: max-age=3600") // by net/http
	request := "GET " + uris[0] + " HTTP/1.1\r\nHost: bench\r\n" + strings.Join(at.Headers, "\r\n") + "\r\n\r\n"
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			err = errors.Join(err, c.Close())
		}
	}()
	open := func(n int) (int64, error) {
		for range n {
			c, err := net.Dial("tcp", strings.TrimPrefix(g.Serve.Addresses["twilio"], "http://"))
			if err != nil {
				return 0, err
			}
			conns = append(conns, c)
			if err := c.SetDeadline(time.Now().Add(rig.Patience)); err != nil {
				return 0, err
			}
			if _, err := io.WriteString(c, request); err != nil {
				return 0, err
			}
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				return 0, err
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				return 0, err
			}
		}
		// They are idle, and others are not: without any work there is no collection either.
		err := rig.Pause(ctx, r.Long(5*time.Second))
		for range r.Times(3, 1) {
			if err == nil {
				_, err = r.FindDriver().Run(ctx, others)
			}
			err = errors.Join(err, rig.Pause(ctx, r.Long(2*time.Second)))
		}
		if err != nil {
			return 0, err
		}
		return g.Serve.Resident()
	}
	n := r.Size(10_000, 100)
	before, err := open(n / 50) // the page is known by now
	if err != nil {
		return err
	}
	after, err := open(n)
	if err != nil {
		return err
	}
	r.AtMost(fmt.Sprintf("resident memory for each of %d idle connections", n), float64(after-before)/float64(n)/1024, 8, "KB")
	return nil
}
