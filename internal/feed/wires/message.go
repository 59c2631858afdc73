// This file reads and writes the messages of feed.proto. The generated package feedpb does the same by reflection, and makes the program
// 1.8 MB larger; the tests compare the two.

package wires

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"understudy"
	"understudy/internal/feed"
	"understudy/kit/jsonspan"
)

// followRequest is the message FollowRequest.
type followRequest struct {
	Source      string   `json:"source"`
	After       string   `json:"after"`
	Kinds       []string `json:"kinds"`
	Fields      []string `json:"fields"`
	Limit       uint32   `json:"limit"`
	WaitSeconds *uint32  `json:"waitSeconds"`
}

// decodeJSONRequest reads a followRequest from JSON.
func decodeJSONRequest(data []byte) (*followRequest, error) {
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	m := &followRequest{}
	if err := in.Decode(m); err != nil {
		return nil, fmt.Errorf("the request is not a FollowRequest: %w", err)
	}
	return m, nil
}

// decodeRequest reads a followRequest from the encoding of Protocol Buffers. It skips unknown fields.
func decodeRequest(data []byte) (*followRequest, error) {
	m := &followRequest{}
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil, fmt.Errorf("the request is not a FollowRequest: %w", protowire.ParseError(n))
		}
		value := data[n:]
		var text []byte
		var integer uint64
		switch {
		case kind == protowire.BytesType && number <= 4:
			text, n = protowire.ConsumeBytes(value)
		case kind == protowire.VarintType && (number == 5 || number == 6):
			integer, n = protowire.ConsumeVarint(value)
		default:
			n = protowire.ConsumeFieldValue(number, kind, value)
			number = 0
		}
		if n < 0 {
			return nil, fmt.Errorf("the request is not a FollowRequest: %w", protowire.ParseError(n))
		}
		if !utf8.Valid(text) {
			return nil, errors.New("the request has a text that is not UTF-8")
		}
		data = value[n:]
		m.set(number, string(text), uint32(integer))
	}
	return m, nil
}

// set sets a field by its number. It ignores unknown numbers.
func (m *followRequest) set(number protowire.Number, text string, integer uint32) {
	switch number {
	case 1:
		m.Source = text
	case 2:
		m.After = text
	case 3:
		m.Kinds = append(m.Kinds, text)
	case 4:
		m.Fields = append(m.Fields, text)
	case 5:
		m.Limit = integer
	case 6:
		m.WaitSeconds = &integer
	}
}

// query returns the query of GET /-/feed that asks the same.
func (m *followRequest) query() string {
	q := url.Values{"kind": m.Kinds, "field": m.Fields}
	if m.Source != "" {
		q.Set("source", m.Source)
	}
	if m.After != "" {
		q.Set("after", m.After)
	}
	if m.Limit > 0 {
		q.Set("limit", strconv.FormatUint(uint64(m.Limit), 10))
	}
	if m.WaitSeconds != nil {
		q.Set("wait", strconv.FormatUint(uint64(*m.WaitSeconds), 10)+"s")
	}
	return q.Encode()
}

// message is the message FollowResponse.
type message struct {
	Cursor    string    `json:"cursor,omitempty"`
	Start     *struct{} `json:"start,omitempty"`
	Change    *change   `json:"change,omitempty"`
	Heartbeat *struct{} `json:"heartbeat,omitempty"`
	End       *end      `json:"end,omitempty"`
}

// end is the message End.
type end struct {
	Reason string `json:"reason"`
}

// change is the message Change. In JSON, integers of 64 bits are texts, as in ProtoJSON.
type change struct {
	N       int64     `json:"n,omitempty,string"`
	Source  string    `json:"source,omitempty"`
	Kind    string    `json:"kind,omitempty"`
	ID      string    `json:"id,omitempty"`
	What    string    `json:"what"`
	Fields  []string  `json:"fields,omitempty"`
	Version int64     `json:"version,omitempty,string"`
	At      time.Time `json:"at"`
}

// whats has the names of the values of the enumeration What, in the order of their numbers.
var whats = [...]string{"WHAT_UNSPECIFIED", "WHAT_CAME", "WHAT_CHANGED", "WHAT_WENT"}

// findWhat returns the number of a change's What.
func findWhat(t understudy.ChangeType) int {
	switch t {
	case understudy.Changed:
		return 2
	case understudy.Deleted:
		return 3
	}
	return 1
}

// newMessage returns the message of an event, or nil if the event has none.
func newMessage(e *feed.Event) *message {
	m := &message{Cursor: string(e.Cursor)}
	switch e.Kind {
	case feed.EventStart:
		m.Start = &struct{}{}
	case feed.EventChange:
		m.Change = newChange(e.Change)
	case feed.EventHeartbeat:
		m.Heartbeat = &struct{}{}
	case feed.EventEnd:
		m.End = &end{feed.EndMessage}
	default: // each message is flushed
		return nil
	}
	return m
}

// encodeProto returns the message of an event in the encoding of Protocol Buffers, or nil if the event has none. The bytes are shared
// with other subscribers.
func encodeProto(e *feed.Event) []byte {
	return e.Encode(func(e *feed.Event) []byte {
		m := newMessage(e)
		if m == nil {
			return nil
		}
		return m.appendProto(nil)
	})
}

// newChange returns the message of a change. Its texts are UTF-8, which Protocol Buffers require.
func newChange(c *understudy.Change) *change {
	m := &change{N: c.N, Source: c.Source, Kind: c.Kind, ID: strings.ToValidUTF8(c.ID, "\uFFFD"), What: whats[findWhat(c.Type)],
		Version: c.Version, At: c.At.UTC()}
	for name := range c.Fields.All() {
		m.Fields = append(m.Fields, strings.ToValidUTF8(jsonspan.Name([]byte(name)), "\uFFFD"))
	}
	return m
}

// appendProto appends the message in the encoding of Protocol Buffers.
func (m *message) appendProto(b []byte) []byte {
	b = appendText(b, 1, m.Cursor)
	switch {
	case m.Start != nil:
		b = appendBytes(b, 2, nil)
	case m.Change != nil:
		b = appendBytes(b, 3, m.Change.appendProto(nil))
	case m.Heartbeat != nil:
		b = appendBytes(b, 4, nil)
	case m.End != nil:
		b = appendBytes(b, 5, appendText(nil, 1, m.End.Reason))
	}
	return b
}

func (m *change) appendProto(b []byte) []byte {
	b = appendInteger(b, 1, m.N)
	b = appendText(b, 2, m.Source)
	b = appendText(b, 3, m.Kind)
	b = appendText(b, 4, m.ID)
	for i, name := range whats {
		if name == m.What {
			b = appendInteger(b, 5, int64(i))
		}
	}
	for _, name := range m.Fields {
		b = appendBytes(b, 6, []byte(name))
	}
	b = appendInteger(b, 7, m.Version)
	return appendBytes(b, 8, appendInteger(appendInteger(nil, 1, m.At.Unix()), 2, int64(m.At.Nanosecond())))
}

// appendText appends a field with a text. An empty text is the default and takes no bytes.
func appendText(b []byte, number protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return appendBytes(b, number, []byte(text))
}

func appendBytes(b []byte, number protowire.Number, data []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), data)
}

// appendInteger appends a field with an integer. 0 is the default and takes no bytes.
func appendInteger(b []byte, number protowire.Number, n int64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(n))
}
