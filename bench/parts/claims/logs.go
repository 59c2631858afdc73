package claims

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"time"

	"understudy/bench/parts/wal"
	"understudy/bench/rig"
	"understudy/kit/logline"
)

var bufferedLog = claim{
	name: "buffered-log", systems: "24",
	says:    "A write-ahead log is faster without a buffer",
	figure:  "1.6 times as many appends a second without a buffer",
	measure: measureBuffer,
}

// measureBuffer writes the article's log with and without a buffer, and in one write each.
func measureBuffer(ctx context.Context, r *rig.Run) (finding, error) {
	names, rates, err := wal.MeasureRates(ctx, r, r.Times(11, 1))
	if err != nil {
		return finding{}, err
	}
	f := finding{table: [][]string{{"appends a second, each flushed", "median", "quartiles"}}, title: "Appends a second, each flushed"}
	for i, name := range names {
		b := bar(name, rates[i])
		f.bars = append(f.bars, b)
		f.table = append(f.table, []string{name, rig.Figure(b.Value), rig.Figure(b.Low) + " to " + rig.Figure(b.High)})
	}
	article, fair := medianRatio(rates[0], rates[1]), medianRatio(rates[2], rates[3])
	f.ours = fmt.Sprintf("%s times without a buffer in the article's six steps, %s times with one write each", rig.Figure(article), rig.Figure(fair))
	f.verdict = judge(article > 1.2 && fair > 1.2, wrong)
	f.text = "Each append is flushed to the disk, and the flush takes nearly all of the time. The article makes a new buffer for each append, writes one " +
		"entry into it and writes its header again. A buffer is good for several entries in one write: kit/wal writes what waits together and flushes it " +
		"once (`make bench ONLY=wal`)."
	return f, nil
}

// medianRatio returns the median of a divided by b in the same round.
func medianRatio(a, b []float64) float64 {
	return measured{ns: a}.ratio(measured{ns: b})
}

var logOutput = claim{
	name: "log-output", systems: "37",
	says:    "log.Output is faster than log.Println and saves its allocation",
	figure:  "faster by more for longer texts, one allocation less; measured with a writer that discards",
	measure: measureOutput,
}

// counter counts what is written, so that package log cannot leave out its work.
type counter struct{ bytes int }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += len(p)
	return len(p), nil
}

// measureOutput writes texts of the article's three lengths.
func measureOutput(_ context.Context, r *rig.Run) (finding, error) {
	out := &counter{}
	std := log.New(out, "", log.LstdFlags)
	h := logline.New(out, logline.Options{})
	var ways []way
	for _, length := range []int{12, 34, 57} {
		texts := make([]string, 64)
		for i := range texts {
			texts[i] = randomText(length)
		}
		add := func(name string, write func(string) error) {
			ways = append(ways, way{fmt.Sprintf("%s, %d bytes", name, length), func(n int) (err error) {
				for i := range n {
					if e := write(texts[i&63]); e != nil {
						err = e
					}
				}
				return err
			}})
		}
		add("Println", func(s string) error { std.Println(s); return nil })
		add("Output", func(s string) error { return std.Output(1, s) })
		add("kit/logline", func(s string) error { return h.Begin(time.Now(), slog.LevelInfo, s).Write() })
	}
	got, err := turn(r, ways)
	if err != nil {
		return finding{}, err
	}
	table, bars := tabulate("one line to a counting writer", got)
	println, output := got[6], got[7]
	return finding{
		ours: fmt.Sprintf("57 bytes: Println %s ns and %s allocations, Output %s and %s; ours %s and %s", rig.Figure(println.median()), count(println.allocs),
			rig.Figure(output.median()), count(output.allocs), rig.Figure(got[8].median()), count(got[8].allocs)),
		verdict: judge(output.ratio(println) < 1 && output.allocs < println.allocs, heldThen),
		title:   "Nanoseconds a line, to a writer that counts",
		bars:    bars, table: table,
		text: "The article's benchmark writes to io.Discard. Package log notices this writer since Go 1.21 and returns at once, so the benchmark measures " +
			"nothing today. With a writer that counts, the claim can be measured. kit/logline also writes a level and a time with milliseconds.",
	}, nil
}
