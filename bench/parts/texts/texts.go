// Package texts is a part of the bench: queries and ids as text, beside net/url and
// encoding/base64.
package texts

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"time"

	"understudy"
	"understudy/bench/rig"
)

// note is a sort of ids.
type note struct{}

// Prefix is what they begin with.
func (note) Prefix() string { return "" }

// Measure writes a query of ten parameters with understudy.Query and url.Values,
// and an id of 16 bytes as 22 characters with understudy.ID and, the way one
// does it first, from its hex digits through encoding/hex and encoding/base64.
func Measure(_ context.Context, r *rig.Run) error {
	var query understudy.Query
	values := url.Values{}
	for i := range 10 {
		p := understudy.Param{Name: fmt.Sprintf("StartTime>%d", i), Value: "2024-01-01T00:00:00+02:00 é"}
		query = append(query, p)
		values.Add(p.Name, p.Value)
	}
	if query.String() != values.Encode() {
		return fmt.Errorf("%s is not %s", query, values.Encode())
	}
	var kept string
	ratios, allocs, err := r.Turns("query of 10 parameters", "url.Values", 20_000,
		func() error { kept = query.String(); return nil }, func() error { kept = values.Encode(); return nil })
	if err != nil {
		return err
	}
	r.AtMost("allocations a query as a string", float64(int(allocs)), 1, "")
	r.AtLeast("times as fast as url.Values, median", rig.Median(ratios), 2, "")
	r.Say("")
	const digits = "ad91e02ba1474c47aa8c1f3c2240c0df"
	id, ok := understudy.ParseID[note](digits)
	if !ok {
		return fmt.Errorf("%s is no id", digits)
	}
	buf := make([]byte, 0, 64)
	// A thousand at once: a call through a function value takes as long as one.
	many := func(do func()) func() error {
		return func() error {
			for range 1000 {
				do()
			}
			return nil
		}
	}
	ratios, allocs, err = r.Turns("1,000 ids, 22 characters each", "base64", 500,
		many(func() { buf = id.AppendShort(buf[:0]) }),
		many(func() { raw, _ := hex.DecodeString(digits); kept = base64.RawURLEncoding.EncodeToString(raw) }))
	if err != nil {
		return err
	}
	if string(buf) != kept {
		return fmt.Errorf("%s is not %s", buf, kept)
	}
	r.AtMost("allocations, 1,000 ids", float64(int(allocs)), 0, "")
	r.AtLeast("times as fast as by hex and base64, median", rig.Median(ratios), 2, "")
	var took []time.Duration
	for range 15 {
		one, _, err := rig.Each(many(func() { buf = id.AppendShort(buf[:0]) }), r.Times(500, 20))
		if err != nil {
			return err
		}
		took = append(took, one)
	}
	r.AtMost("an id appended as 22 characters, median", float64(rig.Median(took))/1000, 25, "ns")
	return nil
}
