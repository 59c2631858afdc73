package feedpb_test

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"understudy/follow/feedpb"
	"understudy/internal/checktest"
)

// A client that passes messages on loses nothing that a later server adds.
func TestUnknownFieldsAreKept(t *testing.T) {
	t.Parallel()
	later := protowire.AppendVarint(protowire.AppendTag(nil, 100, protowire.VarintType), 7)
	change, err := proto.Marshal(&feedpb.Change{N: 41, Kind: "calls"})
	checktest.MustNoError(t, err, "a change")
	data := protowire.AppendTag([]byte(nil), 3, protowire.BytesType)
	data = append(protowire.AppendBytes(data, append(change, later...)), later...)
	m := &feedpb.FollowResponse{}
	checktest.MustNoError(t, proto.Unmarshal(data, m), "a message of a later server")
	checktest.Equal(t, m.GetChange().GetN(), 41, "the number")
	again, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	checktest.MustNoError(t, err, "the message again")
	checktest.True(t, bytes.Equal(again, data), "%x is not %x", again, data)
}
