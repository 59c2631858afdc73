package wires

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"understudy"
	"understudy/follow/feedpb"
	"understudy/internal/checktest"
	"understudy/internal/feed"
	"understudy/internal/feed/feedtest"
)

// newGenerated returns the generated message of a change.
func newGenerated(c *feedpb.Change) *feedpb.FollowResponse {
	return &feedpb.FollowResponse{Event: &feedpb.FollowResponse_Change{Change: c}}
}

// The messages equal those of the package that protoc-gen-go generated, in both encodings.
func TestMessagesEqualTheGeneratedOnes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 6, 1, 12, 0, 1, 5000, time.UTC)
	for _, c := range []struct {
		event feed.Event
		want  *feedpb.FollowResponse
	}{
		{feed.Event{Kind: feed.EventStart, Cursor: []byte("0")},
			&feedpb.FollowResponse{Cursor: "0", Event: &feedpb.FollowResponse_Start{Start: &feedpb.Start{}}}},
		{feed.Event{Kind: feed.EventHeartbeat},
			&feedpb.FollowResponse{Event: &feedpb.FollowResponse_Heartbeat{Heartbeat: &feedpb.Heartbeat{}}}},
		{feed.Event{Kind: feed.EventEnd, Cursor: []byte("4.x")},
			&feedpb.FollowResponse{Cursor: "4.x", Event: &feedpb.FollowResponse_End{End: &feedpb.End{Reason: feed.EndMessage}}}},
		{feed.Event{Kind: feed.EventChange, Change: &understudy.Change{N: 1 << 60, Source: "twilio", Kind: "calls", ID: "CAé\xff",
			Type: understudy.Changed, Fields: understudy.NewNames("price", "status"), Version: 90, At: at}},
			newGenerated(&feedpb.Change{N: 1 << 60, Source: "twilio", Kind: "calls", Id: "CAé\uFFFD", What: feedpb.What_WHAT_CHANGED,
				Fields: []string{"price", "status"}, Version: 90, At: timestamppb.New(at)})},
		{feed.Event{Kind: feed.EventChange, Change: &understudy.Change{Type: understudy.Deleted, At: at}},
			newGenerated(&feedpb.Change{What: feedpb.What_WHAT_WENT, At: timestamppb.New(at)})},
		{feed.Event{Kind: feed.EventChange, Change: &understudy.Change{Type: understudy.Appeared, At: at}},
			newGenerated(&feedpb.Change{What: feedpb.What_WHAT_CAME, At: timestamppb.New(at)})},
	} {
		m := newMessage(&c.event)
		var binary, text feedpb.FollowResponse
		checktest.MustNoError(t, proto.Unmarshal(m.appendProto(nil), &binary), "the message %v", c.want)
		checktest.True(t, proto.Equal(&binary, c.want), "got %v, want %v", &binary, c.want)
		checktest.True(t, bytes.Equal(m.appendProto(nil), marshal(t, c.want)), "the bytes of %v", c.want)
		data, err := json.Marshal(m)
		checktest.MustNoError(t, err, "JSON of %v", c.want)
		checktest.MustNoError(t, protojson.Unmarshal(data, &text), "%s", data)
		checktest.True(t, proto.Equal(&text, c.want), "%s is %v, want %v", data, &text, c.want)
	}
}

// marshal returns the bytes that package proto writes. Without options it may write fields in any order.
func marshal(t checktest.T, m proto.Message) []byte {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	checktest.MustNoError(t, err, "%v", m)
	return data
}

// Random changes have the bytes that package proto writes.
func TestChangesAreEncodedAsPackageProtoDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zA-Zé𝄞 _.-]{0,20}`)
		at := time.Unix(rapid.Int64Range(-1<<36, 1<<36).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds"))
		fields := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,9}`), 0, 4, rapid.ID[string]).Draw(t, "fields")
		n := rapid.IntRange(0, 2).Draw(t, "what")
		c := understudy.Change{N: rapid.Int64().Draw(t, "n"), Source: text.Draw(t, "source"), Kind: text.Draw(t, "kind"), ID: text.Draw(t, "id"),
			Type:   []understudy.ChangeType{understudy.Appeared, understudy.Changed, understudy.Deleted}[n],
			Fields: understudy.NewNames(fields...), Version: rapid.Int64().Draw(t, "version"), At: at}
		e := feed.Event{Kind: feed.EventChange, Cursor: []byte(text.Draw(t, "cursor")), Change: &c}
		want := newGenerated(&feedpb.Change{N: c.N, Source: c.Source, Kind: c.Kind, Id: c.ID, What: feedpb.What(n + 1), Version: c.Version,
			Fields: slices.Collect(c.Fields.All()), At: timestamppb.New(at)})
		want.Cursor = string(e.Cursor)
		got := newMessage(&e).appendProto(nil)
		checktest.True(t, bytes.Equal(got, marshal(t, want)), "%x is not %v", got, want)
	})
}

// Requests that the generated package reads are read with the same content. Others are errors, or were made of unknown fields.
func FuzzDecodeRequest(f *testing.F) {
	for _, m := range []*feedpb.FollowRequest{
		{},
		{Source: "twilio", After: "41.mwy12pz1", Kinds: []string{"calls", ""}, Fields: []string{"status"}, Limit: 3, WaitSeconds: new(uint32)},
		{Limit: 1<<32 - 1},
	} {
		data, err := proto.Marshal(m)
		checktest.MustNoError(f, err, "marshal")
		f.Add(data)
	}
	f.Add([]byte{0x0a, 0x01, 0xff})
	f.Add([]byte{0x08, 0x01, 0x3a, 0x00, 0x0b, 0x0c})
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = decodeJSONRequest(data) // must not panic
		got, err := decodeRequest(data)
		var want feedpb.FollowRequest
		if proto.Unmarshal(data, &want) != nil {
			return
		}
		checktest.MustNoError(t, err, "%x", data)
		same := &feedpb.FollowRequest{Source: got.Source, After: got.After, Kinds: got.Kinds, Fields: got.Fields, Limit: got.Limit,
			WaitSeconds: got.WaitSeconds}
		want.ProtoReflect().SetUnknown(nil)
		checktest.True(t, proto.Equal(same, &want), "%x is %v, want %v", data, same, &want)
	})
}

// What is no message of a protocol is refused.
func TestBadCallsAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, feedtest.NewTable("twilio"), 0)
	for _, c := range []struct {
		contentType, body string
		status            int
		end               string // the last frame
	}{
		{"application/json", "{}", http.StatusUnsupportedMediaType, ""},
		{"application/grpc+json", "", http.StatusUnsupportedMediaType, ""},
		{"application/connect+json", "", http.StatusOK, "invalid_argument"},
		{"application/connect+json", "\x00\x00\x00\x00\x02{", http.StatusOK, "invalid_argument"},
		{"application/connect+json", "\x00\x00\x00\x00\x07{\"x\":1}", http.StatusOK, "invalid_argument"},
		{"application/connect+json", "\x01\x00\x00\x00\x02{}", http.StatusOK, "unimplemented"},
		{"application/connect+proto", "\x00\xff\xff\xff\xff", http.StatusOK, "resource_exhausted"},
		{"application/grpc-web+proto", "\x00\x00\x00\x00\x01\xff", http.StatusOK, "grpc-status: 3\r\n"},
		{"application/grpc-web; charset=utf-8", "\x01\x00\x00\x00\x00", http.StatusOK, "grpc-status: 12\r\n"},
	} {
		req := r.request(within(t), "all", followProcedure)
		post, err := http.NewRequestWithContext(req.Context(), http.MethodPost, req.URL.String(), bytes.NewReader([]byte(c.body)))
		checktest.MustNoError(t, err, "a request")
		post.Header = req.Header
		post.Header.Set("Content-Type", c.contentType)
		resp, err := r.server.Client().Do(post)
		checktest.MustNoError(t, err, "%s %q", c.contentType, c.body)
		var got bytes.Buffer
		_, err = got.ReadFrom(resp.Body)
		_ = resp.Body.Close()
		checktest.MustNoError(t, err, "the response")
		checktest.Equal(t, resp.StatusCode, c.status, "%s %q", c.contentType, c.body)
		checktest.Contains(t, got.String(), c.end, "%s %q", c.contentType, c.body)
	}
	r.awaitFree(t)
}
