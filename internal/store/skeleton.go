// A page's skeleton: its bytes outside the records, and which versions stand
// between them.

package store

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"understudy"
)

// skeleton is what is stored of a page beside the columns of its row.
type skeleton struct {
	uri         string // of its key: the row has only a hash of it
	contentType string
	charset     string
	initialAge  time.Duration // whole seconds
	id          string        // the record an instance path names
	next        string        // URI of the next page, "" when there is none; after assemble
	nextPlace   place         // from parseSkeleton: where it lies in outside
	versions    []int64
	gaps        []int  // bytes before each record since the one before
	outside     []byte // from parseSkeleton: with marks where marked
	marked      bool
}

// A next link often holds the id of the last record, a previous link that of
// the first. These bytes stand for the ids, unless outside has them anyway.
const (
	markFirst = 1
	markLast  = 2
)

// outsideOf collects the bytes of body outside rows, and the gaps.
func outsideOf(body []byte, rows []understudy.Row) (outside []byte, gaps []int) {
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

// appendTo appends the unpacked form; first and last are the ids of the first
// and the last record. Versions are runs (difference to the end of the run
// before, length); gaps likewise, as they are nearly always equal.
func (s *skeleton) appendTo(dst []byte, first, last string) []byte {
	dst = appendText(dst, s.uri)
	dst = appendText(dst, s.header())
	dst = appendText(dst, s.id)
	dst = appendPlace(dst, s.outside, s.next)
	dst = binary.AppendUvarint(dst, uint64(len(s.versions)))
	expected := int64(0)
	for i := 0; i < len(s.versions); {
		n := 1
		for i+n < len(s.versions) && s.versions[i+n] == s.versions[i]+int64(n) {
			n++
		}
		dst = binary.AppendVarint(dst, s.versions[i]-expected)
		dst = binary.AppendUvarint(dst, uint64(n))
		expected = s.versions[i] + int64(n)
		i += n
	}
	for i := 0; i < len(s.gaps); {
		n := 1
		for i+n < len(s.gaps) && s.gaps[i+n] == s.gaps[i] {
			n++
		}
		dst = binary.AppendUvarint(dst, uint64(s.gaps[i]))
		dst = binary.AppendUvarint(dst, uint64(n))
		i += n
	}
	outside, marked := mark(s.outside, first, last)
	if marked {
		dst = append(dst, 1)
	} else {
		dst = append(dst, 0)
	}
	return append(dst, outside...)
}

// header is what upstream's header said: content type, charset and age, with a
// NUL between, which no header holds. What is empty at its end is left out.
func (s *skeleton) header() string {
	switch {
	case s.initialAge > 0:
		return s.contentType + "\x00" + s.charset + "\x00" + strconv.FormatInt(int64(s.initialAge/time.Second), 10)
	case s.charset != "":
		return s.contentType + "\x00" + s.charset
	}
	return s.contentType
}

// setHeader takes apart what header makes.
func (s *skeleton) setHeader(text string) {
	s.contentType, text, _ = strings.Cut(text, "\x00")
	s.charset, text, _ = strings.Cut(text, "\x00")
	seconds, _ := strconv.ParseUint(text, 10, 32) // none: 0
	s.initialAge = time.Duration(seconds) * time.Second
}

// mark puts marks for the ids, if they can be told from the text.
func mark(text []byte, first, last string) (marked []byte, ok bool) {
	const marks = "\x01\x02"
	if len(first) < 8 || len(last) < 8 || bytes.ContainsAny(text, marks) || strings.ContainsAny(first+last, marks) {
		return text, false
	}
	text = bytes.ReplaceAll(text, []byte(last), []byte{markLast})
	return bytes.ReplaceAll(text, []byte(first), []byte{markFirst}), true
}

// unmark puts the ids back.
func unmark(text []byte, first, last string) []byte {
	text = bytes.ReplaceAll(text, []byte{markFirst}, []byte(first))
	return bytes.ReplaceAll(text, []byte{markLast}, []byte(last))
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// parseSkeleton reads the unpacked form.
func parseSkeleton(data []byte) (*skeleton, error) {
	r := reader{data: data}
	s := &skeleton{}
	s.uri = string(r.take(r.count(len(data))))
	s.setHeader(string(r.take(r.count(len(data)))))
	s.id = string(r.take(r.count(len(data))))
	s.nextPlace = r.place(maxUnpacked)
	// A run takes two bytes and may stand for many records, but never for more
	// than the body it came from could hold.
	const maxRows = 1 << 24
	n := r.count(maxRows)
	expected := int64(0)
	for len(s.versions) < n && r.err == nil {
		first := expected + r.varint()
		run := r.count(n - len(s.versions))
		if run == 0 {
			r.fault("empty run")
		}
		for i := range run {
			s.versions = append(s.versions, first+int64(i))
		}
		expected = first + int64(run)
	}
	for len(s.gaps) < n && r.err == nil {
		gap := r.count(maxUnpacked)
		run := r.count(n - len(s.gaps))
		if run == 0 {
			r.fault("empty run")
		}
		for range run {
			s.gaps = append(s.gaps, gap)
		}
	}
	s.marked = r.byte() == 1
	s.outside = r.data
	return s, r.err
}

// assemble builds the page's body and rows from the versions' entries, in
// order.
func (s *skeleton) assemble(entries []*entry) ([]byte, []understudy.Row, error) {
	if s.marked && len(entries) > 0 {
		s.outside = unmark(s.outside, entries[0].id, entries[len(entries)-1].id)
	}
	size := len(s.outside)
	for _, e := range entries {
		size += len(e.body)
	}
	body := make([]byte, 0, size)
	rows := make([]understudy.Row, len(entries))
	r := reader{data: s.outside}
	s.next = r.text(s.nextPlace, s.outside)
	for i, e := range entries {
		body = append(body, r.take(s.gaps[i])...)
		start := len(body)
		body = append(body, e.body...)
		rows[i] = understudy.Row{ID: e.id, Start: start, End: len(body), Clock: e.clock, Parent: e.parent, Final: e.final, Record: e.record,
			Version: s.versions[i]}
	}
	if r.err != nil {
		return nil, nil, r.err
	}
	return append(body, r.data...), rows, nil
}

// nextOf is where a page's next page is, as the skeleton keeps it.
func nextOf(p *understudy.Page) string {
	if p.Next.Source != p.Key.Source && p.Next.URI != "" {
		return "" // a link to another source is not followed
	}
	return p.Next.URI
}
