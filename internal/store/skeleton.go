// A page's skeleton: its bytes outside the records, and which versions stand
// between them.

package store

import (
	"encoding/binary"

	"understudy"
)

// skeleton is what is stored of a page beside the columns of its row.
type skeleton struct {
	contentType string
	id          string // the record an instance path names
	next        string // URI of the next page, "" when there is none
	versions    []int64
	gaps        []int // bytes before each record since the one before
	outside     []byte
}

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

// appendTo appends the unpacked form. Versions are runs (difference to the end
// of the run before, length); gaps likewise, as they are nearly always equal.
func (s *skeleton) appendTo(dst []byte) []byte {
	dst = appendText(dst, s.contentType)
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
	return append(dst, s.outside...)
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// parseSkeleton reads the unpacked form.
func parseSkeleton(data []byte) (*skeleton, error) {
	r := reader{data: data}
	s := &skeleton{}
	s.contentType = string(r.take(r.count(len(data))))
	s.id = string(r.take(r.count(len(data))))
	next := r.place(len(data))
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
		gap := r.count(len(data))
		run := r.count(n - len(s.gaps))
		if run == 0 {
			r.fault("empty run")
		}
		for range run {
			s.gaps = append(s.gaps, gap)
		}
	}
	s.outside = r.data
	s.next = r.text(next, s.outside)
	return s, r.err
}

// assemble builds the page's body and rows from the versions' entries, in
// order.
func (s *skeleton) assemble(entries []*entry) ([]byte, []understudy.Row, error) {
	size := len(s.outside)
	for _, e := range entries {
		size += len(e.body)
	}
	body := make([]byte, 0, size)
	rows := make([]understudy.Row, len(entries))
	r := reader{data: s.outside}
	for i, e := range entries {
		body = append(body, r.take(s.gaps[i])...)
		start := len(body)
		body = append(body, e.body...)
		rows[i] = understudy.Row{ID: e.id, Start: start, End: len(body), Clock: e.clock, Final: e.final, Record: e.record, Version: s.versions[i]}
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
