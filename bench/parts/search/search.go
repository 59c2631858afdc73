// Package search is a part of the bench: words, phrases and conditions in a million messages.
package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"understudy/bench/rig"
)

// Measure asks a server that holds a million messages whole for first pages of
// 50 hits: words rare and common, beginnings, phrases, other scripts, with and
// without filters, none twice. Facets, whose counts take their own time, and
// hits by rank are asked and shown apart.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	records := r.Size(1_000_000, 4000)
	g, err := r.Held(ctx, rig.Whole(records/2, "messages"), "messages") // a world has two messages a call
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	return measure(ctx, r, g, 10, 50)
}

// MeasurePostgres is Measure with the records in PostgreSQL, and with its own targets.
func MeasurePostgres(ctx context.Context, r *rig.Run) (err error) {
	records := r.Size(1_000_000, 4000)
	g, stop, err := r.HeldOnPostgres(ctx, rig.Whole(records/2, "messages"), "messages")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return measure(ctx, r, g, 20, 100)
}

// measure compares the times with the targets of the median and the 99th percentile, in milliseconds.
func measure(ctx context.Context, r *rig.Run, g *rig.Rig, median, p99 float64) error {
	w := rig.NewClient(g.Serve.Addresses["viewer"], "", "")
	defer w.Close()
	d := &asker{rng: rand.New(rand.NewPCG(3, 4)), asked: map[string]bool{}}
	judged, apart := rig.NewAsking(), rig.NewAsking()
	for range r.Times(2000, 60) {
		q := d.query()
		if err := found(ctx, w, q, judged); err != nil {
			return err
		}
	}
	for range r.Times(100, 5) {
		q := d.query()
		for group, more := range map[string]string{"with facets": "&facets=true", "by rank": "&sort=rank", "newest 500": "&limit=500"} {
			if err := found(ctx, w, rig.Question{Group: group, URI: q.URI + more}, apart); err != nil {
				return err
			}
		}
	}
	judged.Show(r, "ms, first page of 50")
	apart.Show(r, "ms, shown apart")
	r.AtMost("a search, median", rig.Ms(rig.Median(judged.All)), median, "ms")
	r.AtMost("a search, 99 %", rig.Ms(rig.Quantile(judged.All, 0.99)), p99, "ms")
	return nil
}

// found asks once and counts the hits; one cut short by time is an error,
// since its time says nothing.
func found(ctx context.Context, w *rig.Client, q rig.Question, in *rig.Asking) error {
	a, err := w.Page(ctx, q.URI)
	if err != nil {
		return err
	}
	var body struct {
		Hits    []json.RawMessage `json:"hits"`
		Partial bool              `json:"partial"`
	}
	if err := json.Unmarshal(a.Body, &body); err != nil {
		return fmt.Errorf("%s: %w", q.URI, err)
	}
	if body.Partial {
		q.Group += ", cut short"
	}
	in.Add(q.Group, a.Took, len(body.Hits))
	return nil
}

// asker draws queries, none twice.
type asker struct {
	rng   *rand.Rand
	asked map[string]bool
}

func (d *asker) query() rig.Question {
	for {
		group, text := d.text()
		uri := "/-/search?format=json&kind=messages&q=" + url.QueryEscape(text)
		if !d.asked[uri] {
			d.asked[uri] = true
			return rig.Question{Group: group, URI: uri}
		}
	}
}

// text returns a query over the texts of the simulated messages. Nearly every query
// has its own range of days or a unique code, so that no query comes twice.
func (d *asker) text() (group, text string) {
	pick := func(of ...string) string { return of[d.rng.IntN(len(of))] }
	code := fmt.Sprint(100000 + d.rng.IntN(900000))
	begin := rig.NewestCall.AddDate(0, 0, -d.rng.IntN(rig.WorldDays))
	days := fmt.Sprintf(" date:%s..%s", begin.Format(time.DateOnly), begin.AddDate(0, 0, d.rng.IntN(30)).Format(time.DateOnly))
	common := pick("your", "code", "thanks", "order", "invoice", "reply", "balance", "payment", "driver", "balance")
	latin := pick("Rechnung", "colis", "pedido", "consulta", "zamówienie", "gruesse", "Zoë", "renee", "Lucía")
	other := pick("код", "ραντεβού", "رمز", "שלום", "验证码", "ご予約", "배송이", "ऑर्डर", "รหัส", "👍", "🎉")
	switch d.rng.IntN(12) {
	case 0:
		return "rare word", code
	case 1:
		return "common word, days", common + days
	case 2:
		return "two common words, days", common + " " + pick("the", "is", "for", "at") + days
	case 3:
		return "common and rare word", common + " " + code
	case 4:
		return "beginning", pick("verif", "appoint", "presc", "confirm", "invo") + "*" + days
	case 5:
		return "rare beginning", code[:5] + "*"
	case 6:
		return "phrase", `"` + pick("verification code", "be there at", "ready for pick-up", "this is a summary", "call me back") + `"` + days
	case 7:
		return "other languages", latin + days
	case 8:
		return "other scripts", other + days
	case 9:
		return "word and status, days", common + " status:" + pick("failed", "undelivered", "delivered", "received") + days
	case 10:
		return "either word, not a third", "(" + common + " OR " + latin + ") -" + pick("code", "thursday", "noon") + days
	}
	return "no such word", pick("xylophone", "quokka", "zyzzyva") + strings.ToLower(fmt.Sprintf("%c%c", 'a'+d.rng.IntN(26), 'a'+d.rng.IntN(26))) + days
}
