package claims

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"understudy/bench/rig"
	"understudy/follow"
)

var moduleStreaming = claim{
	name: "module-streaming", systems: "14",
	says:    "Sending a page module by module makes its first byte early",
	figure:  "first byte after 1 s without, after 400 ms with streaming",
	measure: measureModules,
}

// measureModules asks the viewer for pages of calls whose record is held, while upstream needs half a second for each of
// their related lists.
func measureModules(ctx context.Context, r *rig.Run) (f finding, err error) {
	latency := r.Long(500 * time.Millisecond)
	g, err := r.Rig(ctx, rig.Setup{Latency: latency, Settings: []string{"rate: 1000"}, Mirror: "newest: 24h, older: 24h"})
	if err != nil {
		return finding{}, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	through := g.Through()
	defer through.Close()
	a, err := through.Page(ctx, rig.Calls+"?PageSize=50")
	if err != nil {
		return finding{}, err
	}
	var page struct{ Calls []rig.CallRow }
	if err := json.Unmarshal(a.Body, &page); err != nil {
		return finding{}, err
	}
	w := rig.NewClient(g.Serve.Addresses["viewer"], "", "")
	defer w.Close()
	var first, last []float64
	n := r.Times(15, 2)
	if len(page.Calls) < n {
		return finding{}, fmt.Errorf("%d calls are held, want %d", len(page.Calls), n)
	}
	for _, call := range page.Calls[:n] {
		var begun time.Duration
		began := time.Now()
		traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { begun = time.Since(began) }})
		a, err := w.Get(traced, "/twilio/calls/"+call.SID, "Accept: text/html")
		if err == nil && a.Status != http.StatusOK {
			err = fmt.Errorf("a page of a call: status %d", a.Status)
		}
		if err != nil {
			return finding{}, err
		}
		first, last = append(first, rig.Ms(begun)), append(last, rig.Ms(time.Since(began)))
	}
	f = finding{
		ours: fmt.Sprintf("first byte after %s ms, last after %s ms, where upstream takes %s ms for a list", rig.Figure(rig.Median(first)),
			rig.Figure(rig.Median(last)), rig.Figure(rig.Ms(latency))),
		verdict: judge(rig.Median(first) < 0.4*rig.Median(last), wrong),
		title:   "Milliseconds to a byte of a page",
		bars: []rig.Bar{article("article: first, not streamed", 1000), article("article: first, streamed", 400),
			bar("first byte", first), bar("last byte", last)},
		table: [][]string{{"page of a call", "ms", "quartiles"}},
		text: "The page of a call has its record and several lists, each of them a request to the API. The article sends its modules in their order. Here all " +
			"are started at once and each is sent when it is ready, so the last byte comes after the slowest list, not after the sum of all.",
	}
	for _, b := range f.bars[2:] {
		f.table = append(f.table, []string{b.Name, rig.Figure(b.Value), rig.Figure(b.Low) + " to " + rig.Figure(b.High)})
	}
	return f, nil
}

var eventsOrPolls = claim{
	name: "events-or-polls", systems: "8",
	says:    "Who waits may poll, with pauses of up to a second",
	figure:  "work starts up to 1 s late",
	measure: measurePolls,
}

// measurePolls has followers by server-sent events beside one that asks every second and one that asks ten times as often.
func measurePolls(ctx context.Context, r *rig.Run) (f finding, err error) {
	g, err := r.Rig(ctx, rig.Fast(20))
	if err != nil {
		return finding{}, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	f = finding{title: "Milliseconds from a question that brings a change to its reader",
		table: [][]string{{"way", "ms, median", "ms, 99 %", "requests a second", "server's CPU, ms a second"}}}
	var medians, cpu []float64
	for i, c := range []struct {
		name  string
		pause time.Duration // 0: events
	}{{"server-sent events", 0}, {"polls each second", time.Second}, {"polls each 100 ms", 100 * time.Millisecond}} {
		took, requests, used, err := hear(ctx, r, g, c.pause, 20*i)
		if err != nil {
			return finding{}, fmt.Errorf("%s: %w", c.name, err)
		}
		b := bar(c.name, took)
		medians, cpu, f.bars = append(medians, b.Value), append(cpu, used), append(f.bars, b)
		f.table = append(f.table, []string{c.name, rig.Figure(b.Value), rig.Figure(rig.Quantile(took, 0.99)), rig.Figure(requests), rig.Figure(used)})
	}
	f.ours = fmt.Sprintf("events %s ms, polls each second %s ms, each 100 ms %s ms (medians); CPU %s, %s and %s ms a second", rig.Figure(medians[0]),
		rig.Figure(medians[1]), rig.Figure(medians[2]), rig.Figure(cpu[0]), rig.Figure(cpu[1]), rig.Figure(cpu[2]))
	f.verdict = judge(medians[1] < 2*medians[0], heldThen)
	f.text = "Twenty readers wait for changes at the same time. The time is from before the request that brings a new call from the API until a reader " +
		"knows of it; the fetch and the save are in it. The CPU is that of the server while nothing changes."
	return f, nil
}

// waiting is how many readers wait at the same time.
const waiting = 20

// news is what a reader has heard: every change up to a number.
type news struct {
	reader int
	upTo   int64
	at     time.Time
}

// hear lets readers wait for changes, makes changes, and returns the milliseconds until each reader heard of them.
// requests and cpu are of one second without changes.
func hear(ctx context.Context, r *rig.Run, g *rig.Rig, pause time.Duration, more int) (took []float64, requests, cpu float64, err error) {
	reading, leave := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer leave()
	heard := make(chan news, 4096)
	var asked atomic.Int64
	viewer := g.Serve.Addresses["viewer"]
	for i := range waiting {
		all.Go(func() {
			if pause == 0 {
				_ = follow.Receive(reading, follow.Options{URL: viewer}, func(c follow.Change) error {
					heard <- news{i, c.N, time.Now()}
					return nil
				})
				return
			}
			w := rig.NewClient(viewer, "", "")
			defer w.Close()
			for place := "now"; ; {
				next, number, err := askFeed(reading, w, place)
				if err != nil {
					return
				}
				if asked.Add(1); next != place {
					heard <- news{i, number, time.Now()}
				}
				if place = next; rig.Pause(reading, pause) != nil {
					return
				}
			}
		})
	}
	if err := rig.Pause(ctx, r.Long(2*time.Second)); err != nil {
		return nil, 0, 0, err
	}
	before, err := g.Serve.Cpu()
	if err != nil {
		return nil, 0, 0, err
	}
	n, long := asked.Load(), r.Long(3*time.Second)
	if err := rig.Pause(ctx, long); err != nil {
		return nil, 0, 0, err
	}
	after, err := g.Serve.Cpu()
	if err != nil {
		return nil, 0, 0, err
	}
	requests, cpu = float64(asked.Load()-n)/long.Seconds(), rig.Ms(after-before)/long.Seconds()
	took, err = change(ctx, r, g, heard, more)
	return took, requests, cpu, err
}

// askFeed asks for the changes after a place. It returns the next place and its number.
func askFeed(ctx context.Context, w *rig.Client, place string) (next string, number int64, err error) {
	var page struct {
		Next string `json:"next"`
	}
	if err := w.Json(ctx, "/-/feed.json?after="+place, &page); err != nil {
		return "", 0, err
	}
	digits, _, _ := strings.Cut(page.Next, ".")
	number, err = strconv.ParseInt(digits, 10, 64)
	return page.Next, number, err
}

// change makes changes one after the other, and returns the milliseconds from before the request that brings one until
// each reader has heard of it. Pages are asked for that no other call asks for: their sizes begin at 20 and more.
func change(ctx context.Context, r *rig.Run, g *rig.Rig, heard <-chan news, more int) (took []float64, err error) {
	api, w, viewer := g.Direct(), g.Through(), rig.NewClient(g.Serve.Addresses["viewer"], "", "")
	defer api.Close()
	defer w.Close()
	defer viewer.Close()
	for i := range r.Times(10, 1) {
		if err := api.Post(ctx, "/-/advance", `{"calls":1,"seconds":1}`); err != nil {
			return nil, err
		}
		_, from, err := askFeed(ctx, viewer, "now")
		if err != nil {
			return nil, err
		}
		began, to := time.Now(), from
		if _, err := w.Page(ctx, fmt.Sprintf("%s?PageSize=%d", rig.Calls, 20+i+more)); err != nil {
			return nil, err
		}
		for limit := began.Add(rig.Patience); to == from; {
			if time.Now().After(limit) {
				return nil, errors.New("a new call is no change")
			}
			if _, to, err = askFeed(ctx, viewer, "now"); err != nil {
				return nil, err
			}
		}
		for know := map[int]bool{}; len(know) < waiting; {
			select {
			case n := <-heard:
				if n.upTo >= to && !know[n.reader] {
					know[n.reader] = true
					took = append(took, rig.Ms(n.at.Sub(began)))
				}
			case <-time.After(rig.Patience):
				return nil, errors.New("a reader did not hear of a change")
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if err := rig.Pause(ctx, time.Duration(50+137*i)*time.Millisecond); err != nil { // no multiple of the polls' pause
			return nil, err
		}
	}
	return took, nil
}
