// This file encodes the skeleton of a page: the bytes of its body outside the records, and the version numbers of the
// records.

package codec

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"understudy"
)

// Skeleton is what the store packs of a page besides the columns of its row.
type Skeleton struct {
	URI         string // the URI of the page's key; the page's row has only a hash of it
	ContentType string
	Charset     string
	InitialAge  time.Duration // the age of the page when it was fetched, in whole seconds
	Kept        string        // the stored header fields of the page
	ID          string        // the id of the record, if the page is about a single record
	Next        string        // the URI of the next page, or ""; set by Assemble
	nextPlace   textPlace     // the place of Next in Outside; set by ParseSkeleton
	Versions    []int64
	Gaps        []int  // for each record, the number of bytes between it and the previous record
	Outside     []byte // the bytes outside the records; ParseSkeleton leaves marks in them if marked is true
	marked      bool   // ids in Outside are replaced by marks
}

// A link to the next page often contains the last record's id, and a link to the previous page the first
// record's id. These bytes replace the ids, unless Outside contains such bytes itself.
const (
	markFirst = 1
	markLast  = 2
)

// SplitOutside returns the bytes of body outside the rows, and the gaps between rows.
func SplitOutside(body []byte, rows []understudy.Row) (outside []byte, gaps []int) {
	gaps = make([]int, len(rows))
	end, held := 0, 0
	for i, r := range rows {
		gaps[i] = r.Start - end
		held += r.End - r.Start
		end = r.End
	}
	outside = make([]byte, 0, len(body)-held)
	end = 0
	for _, r := range rows {
		outside = append(outside, body[end:r.Start]...)
		end = r.End
	}
	return append(outside, body[end:]...), gaps
}

// AppendTo appends the unpacked form. first and last are the ids of the first and the last record. Versions are
// runs: the difference from the end of the previous run, and the length. Gaps are runs too, because they are
// nearly always equal.
func (s *Skeleton) AppendTo(dst []byte, first, last string) []byte {
	dst = appendText(dst, s.URI)
	dst = appendText(dst, s.header())
	dst = appendText(dst, s.ID)
	dst = appendPlace(dst, s.Outside, s.Next)
	dst = binary.AppendUvarint(dst, uint64(len(s.Versions)))
	expected := int64(0)
	for i := 0; i < len(s.Versions); {
		n := 1
		for i+n < len(s.Versions) && s.Versions[i+n] == s.Versions[i]+int64(n) {
			n++
		}
		dst = binary.AppendVarint(dst, s.Versions[i]-expected)
		dst = binary.AppendUvarint(dst, uint64(n))
		expected = s.Versions[i] + int64(n)
		i += n
	}
	for i := 0; i < len(s.Gaps); {
		n := 1
		for i+n < len(s.Gaps) && s.Gaps[i+n] == s.Gaps[i] {
			n++
		}
		dst = binary.AppendUvarint(dst, uint64(s.Gaps[i]))
		dst = binary.AppendUvarint(dst, uint64(n))
		i += n
	}
	outside, marked := mark(s.Outside, first, last)
	if marked {
		dst = append(dst, 1)
	} else {
		dst = append(dst, 0)
	}
	return append(dst, outside...)
}

// header returns the stored header fields, separated by NUL, which no header contains: content type, charset,
// age and the rest. It omits empty fields at the end.
func (s *Skeleton) header() string {
	switch {
	case s.Kept != "":
		return s.ContentType + "\x00" + s.Charset + "\x00" + strconv.FormatInt(int64(s.InitialAge/time.Second), 10) + "\x00" + s.Kept
	case s.InitialAge > 0:
		return s.ContentType + "\x00" + s.Charset + "\x00" + strconv.FormatInt(int64(s.InitialAge/time.Second), 10)
	case s.Charset != "":
		return s.ContentType + "\x00" + s.Charset
	}
	return s.ContentType
}

// setHeader sets the fields that the method header has joined.
func (s *Skeleton) setHeader(text string) {
	s.ContentType, text, _ = strings.Cut(text, "\x00")
	s.Charset, text, _ = strings.Cut(text, "\x00")
	text, s.Kept, _ = strings.Cut(text, "\x00")
	seconds, _ := strconv.ParseUint(text, 10, 32) // an absent age counts as 0
	s.InitialAge = time.Duration(seconds) * time.Second
}

// mark replaces the two ids in text by marks. ok is false if the original text could not be restored from the result.
func mark(text []byte, first, last string) (marked []byte, ok bool) {
	const marks = "\x01\x02"
	if len(first) < 8 || len(last) < 8 || bytes.ContainsAny(text, marks) || strings.ContainsAny(first+last, marks) {
		return text, false
	}
	text = bytes.ReplaceAll(text, []byte(last), []byte{markLast})
	return bytes.ReplaceAll(text, []byte(first), []byte{markFirst}), true
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// ParseSkeleton reads the unpacked form of a skeleton.
func ParseSkeleton(data []byte) (*Skeleton, error) {
	r := NewReader(data)
	s := &Skeleton{}
	s.URI = string(r.Take(r.Count(len(data))))
	s.setHeader(string(r.Take(r.Count(len(data)))))
	s.ID = string(r.Take(r.Count(len(data))))
	s.nextPlace = r.place(MaxUnpacked)
	// A run takes two bytes and may stand for many records, but never for more than its page could contain.
	const maxRows = 1 << 24
	n := r.Count(maxRows)
	expected := int64(0)
	for len(s.Versions) < n && r.err == nil {
		first := expected + r.Varint()
		run := r.Count(n - len(s.Versions))
		if run == 0 {
			r.fail("empty run")
		}
		for i := range run {
			s.Versions = append(s.Versions, first+int64(i))
		}
		expected = first + int64(run)
	}
	for len(s.Gaps) < n && r.err == nil {
		gap := r.Count(MaxUnpacked)
		run := r.Count(n - len(s.Gaps))
		if run == 0 {
			r.fail("empty run")
		}
		for range run {
			s.Gaps = append(s.Gaps, gap)
		}
	}
	s.marked = r.Byte() == 1
	s.Outside = r.data
	return s, r.err
}

// Assemble builds the page's body and rows from the entries of the versions, in order.
func (s *Skeleton) Assemble(entries []*Entry) ([]byte, []understudy.Row, error) {
	if s.marked && len(entries) > 0 {
		s.Outside = bytes.ReplaceAll(s.Outside, []byte{markFirst}, []byte(entries[0].ID))
		s.Outside = bytes.ReplaceAll(s.Outside, []byte{markLast}, []byte(entries[len(entries)-1].ID))
	}
	size := len(s.Outside)
	for _, e := range entries {
		size += len(e.Body)
	}
	body := make([]byte, 0, size)
	rows := make([]understudy.Row, len(entries))
	r := NewReader(s.Outside)
	s.Next = r.text(s.nextPlace, s.Outside)
	for i, e := range entries {
		body = append(body, r.Take(s.Gaps[i])...)
		start := len(body)
		body = append(body, e.Body...)
		rows[i] = understudy.Row{ID: e.ID, Start: start, End: len(body), Clock: e.Clock, Parent: e.Parent, Final: e.Final, Record: e.Record,
			Version: s.Versions[i]}
	}
	if r.err != nil {
		return nil, nil, r.err
	}
	return append(body, r.data...), rows, nil
}

// NextOf returns the URI of a page's next page as the skeleton stores it.
func NextOf(p *understudy.Page) string {
	if p.Next.Source != p.Key.Source && p.Next.URI != "" {
		return "" // the store does not follow a link to another source
	}
	return p.Next.URI
}
