// XML: a document of a hundred fields, beside encoding/xml.

package main

import (
	"context"
	stdxml "encoding/xml"
	"fmt"
	"runtime"
	"time"

	"understudy/kit/xmldoc"
)

// update is a document as encoding/xml marshals one.
type update struct {
	XMLName stdxml.Name   `xml:"add"`
	Fields  []updateField `xml:"doc>field"`
}

type updateField struct {
	Name  string `xml:"name,attr"`
	Value string `xml:",chardata"`
}

// hundredFields are an id, words, numbers, times and texts with characters to
// escape, over and over.
func hundredFields() (u update) {
	values := []string{
		"CA0123456789abcdef0123456789abcdef", "completed", "+13055550123", "Mon, 01 Jun 2026 12:00:00 +0000", "-0.00750", "", "true",
		"Tom & Jerry <tom@example.com>", "schöne Grüße aus 東京 🎉",
		"Your code is 123456. It is valid for ten minutes; never tell it to anybody who calls you, we do not ask for it.",
	}
	for i := range 100 {
		u.Fields = append(u.Fields, updateField{fmt.Sprintf("field_%d", i), values[i%len(values)]})
	}
	return u
}

// xmlDocuments writes the same document both ways in alternating rounds: with
// the kit's writer into a buffer that is used again, and with xml.Marshal.
func xmlDocuments(_ context.Context, r *run) error {
	doc := hundredFields()
	u := xmldoc.NewUpdate(nil, xmldoc.Options{})
	ours := func() error {
		u.Reset(nil)
		u.Doc()
		for i := range doc.Fields {
			u.Field(doc.Fields[i].Name, doc.Fields[i].Value)
		}
		return u.End()
	}
	theirs := func() error { _, err := stdxml.Marshal(&doc); return err }
	if err := ours(); err != nil {
		return err
	}
	table := [][]string{{fmt.Sprintf("100 fields, %d bytes", len(u.Bytes())), "writer us", "allocations", "Marshal us", "allocations", "times as fast"}}
	var ratios []float64
	var most float64
	for round := range r.times(15, 2) {
		ways := []func() error{ours, theirs}
		var took [2]time.Duration
		var allocs [2]float64
		for i := range ways {
			way := (i + round) % 2
			var err error
			if took[way], allocs[way], err = each(ways[way], r.times(10_000, 20)); err != nil {
				return err
			}
		}
		most = max(most, allocs[0])
		ratios = append(ratios, float64(took[1])/float64(took[0]))
		table = append(table, []string{fmt.Sprintf("round %d", round+1), figure(us(took[0])), figure(allocs[0]), figure(us(took[1])), figure(allocs[1]), figure(ratios[round])})
	}
	r.table(table)
	r.say("times as fast: median %s, quartiles %s to %s", figure(median(ratios)), figure(quantile(ratios, 0.25)), figure(quantile(ratios, 0.75)))
	r.atMost("allocations a document, into a buffer used again", float64(int(most)), 0, "")
	r.atLeast("times as fast as encoding/xml, median", median(ratios), 5, "")
	return nil
}

// each is what one of many runs took, and how often it allocated.
func each(do func() error, times int) (took time.Duration, allocs float64, err error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	for range times {
		if err := do(); err != nil {
			return 0, 0, err
		}
	}
	took = time.Since(began)
	runtime.ReadMemStats(&after)
	return took / time.Duration(times), float64(after.Mallocs-before.Mallocs) / float64(times), nil
}

// us is a duration as microseconds.
func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
