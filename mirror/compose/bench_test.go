// What composing a page of fifty costs, once its records are at hand.

package compose_test

import (
	"testing"
	"time"

	"understudy/internal/query"
	"understudy/mirror/compose"
)

func BenchmarkPage(b *testing.B) {
	r := newRig(b, 1, nil)
	var found []query.Hit
	err := r.world.Seek(b.Context(), query.RecordQuery{Kinds: []string{"calls"}, Shape: "calls"}, func(f query.Hit) bool {
		found = append(found, f)
		return len(found) < 120
	})
	if err != nil {
		b.Fatal(err)
	}
	for name, params := range map[string]string{
		"unfiltered": "?PageSize=50",
		"filtered":   "?Status=completed&StartTime%3E=2026-01-01&PageSize=50",
	} {
		aim, err := r.src.Spec.ResolveLink("twilio", root+"/Calls.json"+params)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l, err := compose.New(r.src, aim, compose.Options{Now: func() time.Time { return epoch }})
				if err != nil {
					b.Fatal(err)
				}
				for _, f := range found {
					if !l.Take(f) {
						break
					}
				}
				p, err := l.BuildPage(epoch)
				if err != nil || len(p.Rows) != 50 {
					b.Fatal(len(p.Rows), err)
				}
				b.SetBytes(int64(len(p.Body)))
			}
		})
	}
}
