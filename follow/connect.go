// Connect: calls the procedure Follow of feed.proto by the Connect protocol, with JSON.

package follow

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

const (
	feedPath      = "/-/feed"
	procedurePath = "/understudy.feed.v1.FeedService/Follow"
	// endFlag marks the last envelope of a response, which has the error.
	endFlag = 0x02
)

// statuses has the HTTP status of each code of Connect that is not an error of the server (connectrpc.com/docs/protocol).
var statuses = map[string]int{
	"invalid_argument": http.StatusBadRequest, "failed_precondition": http.StatusBadRequest, "out_of_range": http.StatusBadRequest,
	"unauthenticated": http.StatusUnauthorized, "permission_denied": http.StatusForbidden, "not_found": http.StatusNotFound,
	"resource_exhausted": http.StatusTooManyRequests, "unimplemented": http.StatusNotImplemented,
	"unavailable": http.StatusServiceUnavailable, "deadline_exceeded": http.StatusGatewayTimeout,
}

// makeCall returns the procedure's address beside that of the feed, and the envelope of a FollowRequest with the same parameters.
func (c *client) makeCall(feed *url.URL) (at *url.URL, body []byte) {
	to := *feed
	to.Path, to.RawPath, to.RawQuery = strings.TrimSuffix(feed.Path, feedPath)+procedurePath, "", ""
	q := feed.Query()
	message, _ := json.Marshal(map[string]any{ // cannot fail for texts
		"source": q.Get("source"), "after": cmp.Or(c.position, q.Get("after")), "kinds": q["kind"], "fields": q["field"],
	})
	return &to, append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// readCall reads the next envelope of a response and returns its event. The last envelope has an error, or ends the stream.
func readCall(in *bufio.Reader) (event, error) {
	var head [5]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return event{}, err
	}
	if head[0]&^endFlag != 0 {
		return event{}, fmt.Errorf("the server sent a message with the flags %#x", head[0])
	}
	content, err := readContent(in, uint64(binary.BigEndian.Uint32(head[1:])), maxEvent)
	if err != nil {
		return event{}, err
	}
	var m struct {
		Cursor string
		Change *struct {
			Change
			N       int64  `json:"n,string"` // ProtoJSON writes integers of 64 bits as texts
			Version int64  `json:"version,string"`
			What    string `json:"what"` // WHAT_CAME
		}
		Error *struct{ Code, Message string }
	}
	err = json.Unmarshal(content, &m)
	switch {
	case err != nil && head[0] == endFlag:
		return event{}, err
	case err != nil:
		return event{data: content, retry: -1}, nil // change reports the error
	case head[0] == endFlag && m.Error == nil:
		return event{}, io.EOF
	case head[0] == endFlag:
		return event{}, newRefusal(cmp.Or(statuses[m.Error.Code], http.StatusInternalServerError), m.Error.Message, "")
	}
	e := event{id: m.Cursor, hasID: m.Cursor != "", retry: -1}
	if ch := m.Change; ch != nil {
		ch.Change.N, ch.Change.Version, ch.Change.What = ch.N, ch.Version, strings.ToLower(strings.TrimPrefix(ch.What, "WHAT_"))
		e.data, err = json.Marshal(ch.Change)
	}
	return e, err
}
