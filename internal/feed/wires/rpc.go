// This file sends the feed by gRPC, gRPC-Web and Connect. The three differ in how a stream ends.

package wires

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"understudy/internal/feed"
	"understudy/kit/jsonhttp"
)

const (
	// followProcedure is the path of the method Follow of feed.proto.
	followProcedure = "/understudy.feed.v1.FeedService/Follow"
	// maxRequestBytes is the maximum size of a FollowRequest.
	maxRequestBytes = 16 << 10
	// frameHeaderBytes is the size of the flags and the length before each message.
	frameHeaderBytes = 5
)

// The flags of the last frame of a response.
const (
	connectEndFlag = 0x02 // Connect: the frame is a JSON object with the error
	webTrailerFlag = 0x80 // gRPC-Web: the frame has the trailers as text
)

// code is a status code of gRPC, with its name in Connect.
type code struct {
	number int
	name   string
}

// codes has the code of each HTTP status of a refusal. Other statuses become UNAVAILABLE.
var codes = map[int]code{
	http.StatusBadRequest:            {3, "invalid_argument"},
	http.StatusForbidden:             {7, "permission_denied"},
	http.StatusRequestEntityTooLarge: {8, "resource_exhausted"},
	http.StatusNotImplemented:        {12, "unimplemented"},
	http.StatusServiceUnavailable:    {14, "unavailable"},
	http.StatusUnauthorized:          {16, "unauthenticated"},
}

// newRPC returns the handler of the gRPC service. It refuses pages of other sites.
func newRPC(f *feed.Feed) http.Handler {
	forms, _ := jsonhttp.NewFormProtection("") // cannot fail for an empty address
	return forms.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serveRPC(f, w, r) }))
}

// serveRPC reads the request and sends the events that the caller may see.
func serveRPC(f *feed.Feed, w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	contentType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	protocol, encoding, _ := strings.Cut(contentType, "+")
	c := &call{w: w, control: http.NewResponseController(w), isJSON: encoding == "json"}
	switch {
	case protocol == "application/connect" && (encoding == "proto" || encoding == "json"):
		c.end = c.endConnect
	case protocol == "application/grpc" && (encoding == "" || encoding == "proto"):
		c.end = c.endGRPC
	case protocol == "application/grpc-web" && (encoding == "" || encoding == "proto"):
		c.end = c.endWeb
	default:
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	w.Header().Set("Content-Type", contentType)
	status, text, err := c.follow(f, r)
	if err != nil {
		return // the caller has disconnected
	}
	if status == http.StatusUnauthorized && !c.isStarted { // a proxy or a log sees the refusal, and clients know the status, too
		w.WriteHeader(status)
	}
	c.end(status, text)
}

// call is a call of the method Follow.
type call struct {
	w         http.ResponseWriter
	control   *http.ResponseController
	isJSON    bool
	isStarted bool                          // whether a message was sent
	unsent    []byte                        // the frames that are sent next
	end       func(status int, text string) // ends the stream; status is 200 or that of a refusal
}

// follow sends the events. It returns the status with which the stream ends, or the error of a write.
func (c *call) follow(f *feed.Feed, r *http.Request) (status int, text string, err error) {
	in, status, err := c.readRequest(r.Body)
	if err != nil {
		return status, err.Error(), nil
	}
	get := r.Clone(r.Context())
	get.Method, get.URL = http.MethodGet, &url.URL{Path: "/-/feed", RawQuery: in.query()}
	get.Header.Del("Last-Event-ID")
	sub, err := f.Subscribe(get)
	if err != nil {
		status, text = f.Explain(get, err)
		return status, text, r.Context().Err()
	}
	defer func() { sub.Close(err) }()
	_ = c.control.SetReadDeadline(time.Time{}) // the read deadline of the request must not end the stream
	for e, stop := range sub.Follow(r.Context()) {
		if stop != nil {
			status, text = f.Explain(get, stop)
			return status, text, r.Context().Err()
		}
		if data := c.encode(&e); data != nil {
			c.appendFrame(0, data)
		}
		if e.Kind == feed.EventChange && len(c.unsent) < maxUnsent || len(c.unsent) == 0 {
			continue
		}
		if deadline, isNew := sub.ExtendDeadline(); isNew {
			_ = c.control.SetWriteDeadline(deadline) // an error means that the next write fails
		}
		if err := c.flush(); err != nil {
			return 0, "", err
		}
	}
	deadline, _ := sub.ExtendDeadline()
	_ = c.control.SetWriteDeadline(deadline)
	return http.StatusOK, "", nil
}

// readRequest reads the one message of the request.
func (c *call) readRequest(body io.Reader) (in *followRequest, status int, err error) {
	var header [frameHeaderBytes]byte
	if _, err := io.ReadFull(body, header[:]); err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("the request has no message: %w", err)
	}
	size := binary.BigEndian.Uint32(header[1:])
	switch {
	case header[0] != 0:
		return nil, http.StatusNotImplemented, errors.New("compressed requests are not supported")
	case size > maxRequestBytes:
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the request has more than %d bytes", maxRequestBytes)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(body, data); err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("the request is incomplete: %w", err)
	}
	decode := decodeRequest
	if c.isJSON {
		decode = decodeJSONRequest
	}
	in, err = decode(data)
	return in, http.StatusBadRequest, err
}

// encode returns the message of an event, or nil if the event has none.
func (c *call) encode(e *feed.Event) []byte {
	if !c.isJSON {
		return encodeProto(e)
	}
	m := newMessage(e)
	if m == nil {
		return nil
	}
	data, _ := json.Marshal(m) // cannot fail for texts, numbers and times
	return data
}

// appendFrame appends the flags, the length and the content of a frame to what is sent next.
func (c *call) appendFrame(flags byte, data []byte) {
	c.unsent = binary.BigEndian.AppendUint32(append(c.unsent, flags), uint32(len(data)))
	c.unsent = append(c.unsent, data...)
}

// flush sends all frames. The changes that were read at once are sent together.
func (c *call) flush() error {
	c.isStarted = true
	_, err := c.w.Write(c.unsent)
	c.unsent = c.unsent[:0]
	return cmp.Or(err, c.control.Flush())
}

// findCode returns the code of gRPC that belongs to the status of an HTTP response.
func findCode(status int) code {
	if status == http.StatusOK {
		return code{}
	}
	return cmp.Or(codes[status], codes[http.StatusServiceUnavailable])
}

// endGRPC ends the stream with HTTP trailers.
func (c *call) endGRPC(status int, text string) {
	c.w.WriteHeader(http.StatusOK)
	c.w.Header().Set(http.TrailerPrefix+"Grpc-Status", strconv.Itoa(findCode(status).number))
	c.w.Header().Set(http.TrailerPrefix+"Grpc-Message", url.PathEscape(text))
}

// endWeb ends the stream with a frame of trailers.
func (c *call) endWeb(status int, text string) {
	trailers := fmt.Appendf(nil, "grpc-status: %d\r\ngrpc-message: %s\r\n", findCode(status).number, url.PathEscape(text))
	c.appendFrame(webTrailerFlag, trailers)
	_ = c.flush()
}

// endConnect ends the stream with a JSON object.
func (c *call) endConnect(status int, text string) {
	end := map[string]any{}
	if status != http.StatusOK {
		end["error"] = map[string]string{"code": findCode(status).name, "message": text}
	}
	data, _ := json.Marshal(end) // cannot fail for texts
	c.appendFrame(connectEndFlag, data)
	_ = c.flush()
}
