// Package xml is a part of the bench: a document of a hundred fields, beside encoding/xml.
package xml

import (
	"context"
	stdxml "encoding/xml"
	"fmt"

	"understudy/bench/rig"
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

// Measure writes the same document both ways in alternating rounds: with
// the kit's writer into a buffer that is used again, and with xml.Marshal.
func Measure(_ context.Context, r *rig.Run) error {
	doc := hundredFields()
	u := xmldoc.NewUpdate(nil, xmldoc.Options{})
	ours := func() error {
		u.Reset(nil)
		u.BeginDoc()
		for i := range doc.Fields {
			u.AddField(doc.Fields[i].Name, doc.Fields[i].Value)
		}
		return u.End()
	}
	theirs := func() error { _, err := stdxml.Marshal(&doc); return err }
	if err := ours(); err != nil {
		return err
	}
	title := fmt.Sprintf("100 fields, %d bytes", len(u.Bytes()))
	ratios, allocs, err := r.Turns(title, "Marshal", 10_000, ours, theirs)
	if err != nil {
		return err
	}
	r.AtMost("allocations a document, into a buffer used again", float64(int(allocs)), 0, "")
	r.AtLeast("times as fast as encoding/xml, median", rig.Median(ratios), 5, "")
	return nil
}
