package claims

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"understudy/bench/parts/claims/wire/gogopb"
	"understudy/bench/parts/claims/wire/wirepb"
	"understudy/bench/rig"
)

var generatedMessages = claim{
	name: "generated-messages", systems: "36",
	says:    "Generated code of gogoprotobuf is the fast way, and needs proto2 with required fields",
	figure:  "463 to 101 ns, 264 to 32 bytes, 4 to 1 allocations",
	measure: measureMessages,
}

// encoded keeps results, so that the compiler cannot remove their making.
var encoded []byte

// measureMessages compares generated code with reflection.
func measureMessages(_ context.Context, r *rig.Run) (finding, error) {
	got, err := encodeRecords(r)
	if err != nil {
		return finding{}, err
	}
	if len(encoded) == 0 {
		return finding{}, errors.New("there is no result")
	}
	table, bars := tabulate("one message", got)
	return finding{
		ours: fmt.Sprintf("proto.Marshal %s ns, gogoprotobuf %s, vtprotobuf %s, into one buffer %s with %s allocations", rig.Figure(got[0].median()),
			rig.Figure(got[1].median()), rig.Figure(got[2].median()), rig.Figure(got[3].median()), count(got[3].allocs)),
		verdict: judge(got[1].ratio(got[0]) < 1 && got[1].ratio(got[2]) < 0.9, heldThen),
		title:   "Nanoseconds to encode a message of two texts and a number",
		bars:    append([]rig.Bar{article("article: proto.Marshal", 463), article("article: gogoprotobuf", 101)}, bars...),
		table:   table,
		text: "Generated code is still faster than reflection. But gogoprotobuf is no longer kept since 2022, and vtprotobuf generates such code for " +
			"proto3, without required fields and options. All of them write the same bytes for each message.",
	}, nil
}

// MeasureRecord compares the encoding by hand, as the wires of the feed have it, with the libraries.
func MeasureRecord(r *rig.Run) error {
	got, err := encodeRecords(r)
	if err != nil {
		return err
	}
	table, _ := tabulate("a record of two texts and a number", got)
	r.Table(table)
	byHand, buffered := got[4], got[5]
	r.AtLeast("a record by hand, times as fast as proto.Marshal", 1/byHand.ratio(got[0]), 3, "")
	r.AtMost("allocations", math.Round(byHand.allocs*10)/10, 1, "")
	r.AtMost("allocations into one buffer", math.Round(buffered.allocs*10)/10, 0, "")
	return nil
}

// encodeRecords encodes random messages of two texts and a number in six ways, the last two by hand.
func encodeRecords(r *rig.Run) ([]measured, error) {
	const many = 1024
	plain, gogo := make([]*wirepb.Record, many), make([]*gogopb.Record, many)
	for i := range many {
		name, value, n := randomText(8), randomText(16), rand.Int64()
		plain[i] = &wirepb.Record{Name: name, Value: value, Version: n}
		gogo[i] = &gogopb.Record{Name: name, Value: value, Version: n}
		a, errA := proto.Marshal(plain[i])
		b, errB := plain[i].MarshalVT()
		c, errC := gogo[i].Marshal()
		d := appendRecord(nil, plain[i])
		if errA != nil || errB != nil || errC != nil || !bytes.Equal(a, b) || !bytes.Equal(a, c) || !bytes.Equal(a, d) {
			return nil, fmt.Errorf("the encodings differ: %x, %x, %x, %x", a, b, c, d)
		}
	}
	each := func(encode func(i int) ([]byte, error)) func(int) error {
		return func(n int) (err error) {
			for i := range n {
				if encoded, err = encode(i & (many - 1)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	buf := make([]byte, 0, 256)
	return turn(r, []way{
		{"proto.Marshal", each(func(i int) ([]byte, error) { return proto.Marshal(plain[i]) })},
		{"gogoprotobuf", each(func(i int) ([]byte, error) { return gogo[i].Marshal() })},
		{"vtprotobuf", each(func(i int) ([]byte, error) { return plain[i].MarshalVT() })},
		{"vtprotobuf, one buffer", each(func(i int) ([]byte, error) {
			b := buf[:plain[i].SizeVT()]
			_, err := plain[i].MarshalToSizedBufferVT(b)
			return b, err
		})},
		{"by hand", each(func(i int) ([]byte, error) {
			m := plain[i] // two tags and lengths of a byte each, a tag, and a number of at most ten bytes
			return appendRecord(make([]byte, 0, 15+len(m.Name)+len(m.Value)), m), nil
		})},
		{"by hand, one buffer", each(func(i int) ([]byte, error) { return appendRecord(buf[:0], plain[i]), nil })},
	})
}

// appendRecord appends a record in the encoding of Protocol Buffers, as internal/feed/wires does.
func appendRecord(b []byte, m *wirepb.Record) []byte {
	if m.Name != "" {
		b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), m.Name)
	}
	if m.Value != "" {
		b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), m.Value)
	}
	if m.Version != 0 {
		b = protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), uint64(m.Version))
	}
	return b
}

// randomText returns a text of lower case letters.
func randomText(length int) string {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte('a' + rand.IntN(26))
	}
	return string(b)
}
