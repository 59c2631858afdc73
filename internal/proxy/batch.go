// This file serves batches: many reads in one request, processed in parallel and answered in order.

package proxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"understudy"
	"understudy/kit/jsonhttp"
)

// batchPath is the path of batches: {"requests": [{"path": "/…", "headers": {"If-None-Match": "…"}}]}. The
// response is {"responses": [{"status", "headers", "body"}]} in the same order. Each request is a GET of the
// batch's caller like any other: it passes the gate, counts for limits and has its own line in the access log.
const batchPath = "/-/batch"

// The limits of a batch.
const (
	maxBatch     = 100       // the maximum number of requests in a batch
	maxBatchBody = 256 << 10 // the maximum size of the request body, in bytes
	// the maximum number of requests of a batch processed at once; their responses wait in memory until they are sent
	maxBatchAtOnce = 16
	maxBatchReply  = 8 << 20  // the maximum size of the response to one request, in bytes
	maxBatchBytes  = 32 << 20 // the maximum size of the responses of a batch together, in bytes
	maxBatches     = 16       // the maximum number of batches processed at once; one caller may have half of them
)

// batchRequest is one request of a batch.
type batchRequest struct {
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
}

// batchResponse is the response to one request of a batch. A JSON body is included unchanged. Another body is a
// text, or base64 if it is not UTF-8.
type batchResponse struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body,omitempty"`
	Base64  string            `json:"base64,omitempty"`
}

// batch is an HTTP request that contains several requests.
type batch struct {
	exchange *exchange
	bytes    *atomic.Int64 // the size of the bodies of all responses so far, in bytes
}

// errManyBatches is the error for a batch that arrives while the maximum number of batches is processed.
var errManyBatches = errors.New("too many batches are running; try again in a moment")

// serve answers a batch. An error of one of its requests is the response to that request.
func (v batch) serve() (err error) {
	if v.exchange.caller, err = v.exchange.proxy.o.Callers.Identify(v.exchange.original, v.exchange.proxy.o.Source.Name); err != nil {
		return err
	}
	v.exchange.line.Caller = v.exchange.caller.Name
	leave, err := v.exchange.proxy.batches.Take(v.exchange.caller.Name)
	if err != nil {
		return fmt.Errorf("proxy: %w: %w", understudy.ErrUnavailable, errManyBatches)
	}
	defer leave()
	var in struct {
		Requests []batchRequest `json:"requests"`
	}
	if err := jsonhttp.Read(v.exchange.w, v.exchange.r, maxBatchBody, &in); err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return err
		}
		return fmt.Errorf("proxy: %w: the body is not {\"requests\": [{\"path\": \"/…\"}]}: %w", understudy.ErrInvalid,
			understudy.StripPrefixes(err))
	}
	v.exchange.read = true
	if n := len(in.Requests); n == 0 || n > maxBatch {
		return fmt.Errorf("proxy: %w: a batch has 1 to %d requests; this one has %d", understudy.ErrInvalid, maxBatch, n)
	}
	v.exchange.decideClose()
	h := v.exchange.w.Header()
	h["Cache-Control"], h["Vary"] = []string{"private, no-store"}, v.exchange.proxy.fields.vary
	h["Content-Type"], h["X-Request-Id"] = []string{"application/json; charset=utf-8"}, []string{v.exchange.id()}
	v.exchange.sent, v.exchange.line.Status = true, http.StatusOK
	v.exchange.w.WriteHeader(http.StatusOK)
	v.answer(in.Requests)
	return nil
}

// answer processes the requests and sends the responses in order.
func (v batch) answer(all []batchRequest) {
	ctx, end := context.WithCancel(v.exchange.original.Context())
	defer end()
	v.exchange.original = v.exchange.original.WithContext(ctx)
	cut := func() {
		_ = http.NewResponseController(v.exchange.w).SetWriteDeadline(time.Unix(1, 0))
		end()
	}
	answers := make([]chan keptAnswer, 0, len(all))
	out := recorder{v.exchange.w, v.exchange} // records how many bytes are sent
	for i := range all {
		for len(answers) < min(i+maxBatchAtOnce, len(all)) && (len(answers) == i || !v.isCrowded()) {
			r, err := v.request(&all[len(answers)])
			answer := make(chan keptAnswer, 1)
			answers = append(answers, answer)
			go func() { answer <- v.keep(v.serveOne(r, err), cut) }()
		}
		before := ","
		if i == 0 {
			before = `{"responses":[`
		}
		_, _ = out.Write([]byte(before))
		answer := <-answers[i]
		_, _ = out.Write(answer.text) // if the caller has left, the end of its context stops the other requests
		answer.leave()
	}
	_, _ = out.Write([]byte("]}\n"))
}

// keptAnswer is the text of a response that waits for its turn.
type keptAnswer struct {
	text  []byte
	leave func() // tells Options.Unread that the response no longer waits in memory
}

// keep encodes a response as it will be sent. If too many responses wait unread in memory, cut is called and ends
// the batch.
func (v batch) keep(a batchResponse, cut func()) keptAnswer {
	var text bytes.Buffer
	as := json.NewEncoder(&text)
	as.SetEscapeHTML(false) // URLs in bodies keep their & characters
	_ = as.Encode(a)        // cannot fail, because a body that is not JSON is sent as a string
	kept := keptAnswer{text.Bytes(), func() {}}
	if unread := v.exchange.proxy.o.Unread; unread != nil {
		kept.leave = unread.Count(text.Cap(), cut)
	}
	return kept
}

// isCrowded reports whether so many responses wait unread that the next response must not be made before its turn.
func (v batch) isCrowded() bool {
	unread := v.exchange.proxy.o.Unread
	return unread != nil && unread.IsCrowded()
}

// batchFields are the header fields that the requests of a batch do not inherit from it. A request may set the
// fields with value true itself, and the header fields that are part of the API's cache key.
var batchFields = map[string]bool{
	"Accept": true, "Cache-Control": true, "If-None-Match": true, "Pragma": true, "Prefer": true, "X-Request-Id": true,
	"Accept-Encoding": false, "Content-Encoding": false, "Content-Length": false, "Content-Type": false, "Expect": false, "Range": false,
}

// request returns one request of the batch. It has the batch's credential and the header fields that reverse proxies added.
func (v batch) request(one *batchRequest) (*http.Request, error) {
	if !strings.HasPrefix(one.Path, "/") || strings.HasPrefix(one.Path, "/-/") || strings.ContainsAny(one.Path, " #") {
		return nil, fmt.Errorf("proxy: %w: path: write a path of the API with its query", understudy.ErrInvalid)
	}
	u, err := url.ParseRequestURI(one.Path)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w: path: it cannot be parsed", understudy.ErrInvalid)
	}
	r := v.exchange.original.Clone(v.exchange.original.Context())
	r.Method, r.URL, r.RequestURI, r.Body, r.ContentLength, r.TransferEncoding = http.MethodGet, u, one.Path, http.NoBody, 0, nil
	maps.DeleteFunc(r.Header, func(name string, _ []string) bool { _, ok := batchFields[name]; return ok })
	for name, value := range one.Headers {
		name = http.CanonicalHeaderKey(name)
		if _, asked := v.exchange.proxy.o.Source.Spec.Headers.Key[name]; !asked && !batchFields[name] {
			return nil, fmt.Errorf("proxy: %w: headers: a request in a batch can't have %.40q", understudy.ErrInvalid, name)
		}
		r.Header[name] = []string{value}
	}
	v.exchange.proxy.carriers.CopyParams(r, v.exchange.original)
	return r, nil
}

// serveOne answers one request of a batch like a request outside a batch.
func (v batch) serveOne(r *http.Request, err error) (out batchResponse) {
	w := &batchWriter{header: http.Header{}, batchBytes: v.bytes}
	defer func() {
		if recover() != nil { // the panic came after the response had begun, and was logged where it happened
			out = batchResponse{Status: http.StatusInternalServerError,
				Headers: map[string]string{jsonhttp.ErrorHeader: "internal server error"}}
		}
	}()
	refuse := func(err error) {
		one := exchange{proxy: v.exchange.proxy, w: w, r: v.exchange.r, original: v.exchange.original, caller: v.exchange.caller}
		one.fail(err)
	}
	if err != nil {
		refuse(err)
	} else {
		v.exchange.proxy.o.CurrentProxy().ServeHTTP(w, r)
	}
	if w.tooLong {
		w = &batchWriter{header: http.Header{}, batchBytes: &atomic.Int64{}}
		refuse(longError{})
	}
	out = batchResponse{Status: w.status, Headers: map[string]string{}}
	maps.DeleteFunc(w.header, func(name string, _ []string) bool { return name == "Connection" || name == "Content-Length" })
	for name, values := range w.header {
		out.Headers[name] = strings.Join(values, ", ")
	}
	kind, _, _ := mime.ParseMediaType(w.header.Get("Content-Type"))
	switch body := w.body.Bytes(); {
	case len(body) == 0:
	case (kind == "application/json" || strings.HasSuffix(kind, "+json")) && json.Valid(body):
		out.Body = body
	case utf8.Valid(body):
		out.Body, _ = json.Marshal(string(body))
	default:
		out.Base64 = base64.StdEncoding.EncodeToString(body)
	}
	return out
}

// longError is the error for a response that is too long for a batch.
type longError struct{}

func (longError) Error() string {
	return fmt.Sprintf("the answer is longer than %d bytes, or all answers of the batch are longer than %d; request it outside a batch",
		maxBatchReply, maxBatchBytes)
}

// batchWriter stores the response to one request of a batch.
type batchWriter struct {
	header     http.Header
	status     int
	body       bytes.Buffer
	tooLong    bool
	batchBytes *atomic.Int64 // the size of the bodies of the whole batch, in bytes
}

func (w *batchWriter) Header() http.Header { return w.header }

func (w *batchWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
}

// Write stores the bytes, or returns an error if they exceed the limits of the batch.
func (w *batchWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.tooLong = w.tooLong || w.body.Len()+len(p) > maxBatchReply || w.batchBytes.Add(int64(len(p))) > maxBatchBytes
	if w.tooLong {
		w.body = bytes.Buffer{}
		return 0, errors.New("proxy: the answer is too long for a batch")
	}
	return w.body.Write(p)
}
