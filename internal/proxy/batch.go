// Batch: many reads in one request, worked on together and answered in order.

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

// batchPath takes batches: {"requests": [{"path": "/…", "headers": {"If-None-Match": "…"}}]}.
// The answer is {"responses": [{"status", "headers", "body"}]} in the same order. Each request is
// a GET of the batch's caller like any other: it passes the gate, counts and is logged by itself.
const batchPath = "/-/batch"

// The bounds of a batch.
const (
	maxBatch      = 100       // requests
	maxBatchBody  = 256 << 10 // bytes that ask for them
	batchAtWork   = 16        // of them at once, in memory until they are sent
	maxBatchReply = 8 << 20   // bytes of one answer
	maxBatchBytes = 32 << 20  // bytes of all answers of a batch
	maxBatches    = 16        // batches at once, half of them of one caller
)

type batchRequest struct {
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
}

// batchResponse is one answer. A body that is JSON stands there as it is, another one as a
// text, or in base64 where it is not UTF-8.
type batchResponse struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body,omitempty"`
	Base64  string            `json:"base64,omitempty"`
}

// batch is a request that takes several.
type batch struct {
	exchange *exchange
	bytes    *atomic.Int64 // of the bodies of all answers so far
}

// errManyBatches refuses a batch when too many are under way.
var errManyBatches = errors.New("too many batches are under way; send this one again in a moment")

// serve answers a batch. What is wrong with one of its requests is that one's answer.
func (v batch) serve() (err error) {
	if v.exchange.caller, err = v.exchange.proxy.o.Callers.Identify(v.exchange.came, v.exchange.proxy.o.Source.Name); err != nil {
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
		return fmt.Errorf("proxy: %w: want {\"requests\": [{\"path\": \"/…\"}]}: %w", understudy.ErrInvalid, understudy.StripPrefixes(err))
	}
	v.exchange.read = true
	if n := len(in.Requests); n == 0 || n > maxBatch {
		return fmt.Errorf("proxy: %w: a batch has 1 to %d requests, this one %d", understudy.ErrInvalid, maxBatch, n)
	}
	v.exchange.part()
	h := v.exchange.w.Header()
	h["Cache-Control"], h["Vary"] = []string{"private, no-store"}, v.exchange.proxy.fields.vary
	h["Content-Type"], h["X-Request-Id"] = []string{"application/json; charset=utf-8"}, []string{v.exchange.id()}
	v.exchange.sent, v.exchange.line.Status = true, http.StatusOK
	v.exchange.w.WriteHeader(http.StatusOK)
	v.answer(in.Requests)
	return nil
}

// answer works on the requests and sends each answer when its turn has come.
func (v batch) answer(all []batchRequest) {
	ctx, end := context.WithCancel(v.exchange.came.Context())
	defer end()
	v.exchange.came = v.exchange.came.WithContext(ctx)
	cut := func() {
		_ = http.NewResponseController(v.exchange.w).SetWriteDeadline(time.Unix(1, 0))
		end()
	}
	answers := make([]chan keptAnswer, 0, len(all))
	out := recorder{v.exchange.w, v.exchange} // counts what is sent
	for i := range all {
		for len(answers) < min(i+batchAtWork, len(all)) && (len(answers) == i || !v.crowded()) {
			r, err := v.request(&all[len(answers)])
			answer := make(chan keptAnswer, 1)
			answers = append(answers, answer)
			go func() { answer <- v.keep(v.alone(r, err), cut) }()
		}
		before := ","
		if i == 0 {
			before = `{"responses":[`
		}
		_, _ = out.Write([]byte(before))
		answer := <-answers[i]
		_, _ = out.Write(answer.text) // the caller has left: its context ends what is under way
		answer.leave()
	}
	_, _ = out.Write([]byte("]}\n"))
}

// keptAnswer is the text of an answer that waits for its turn.
type keptAnswer struct {
	text  []byte
	leave func() // ends its counting
}

// keep writes an answer as it goes out. Where too much is kept for clients cut ends the batch.
func (v batch) keep(a batchResponse, cut func()) keptAnswer {
	var text bytes.Buffer
	as := json.NewEncoder(&text)
	as.SetEscapeHTML(false) // URLs in bodies stay as they are
	_ = as.Encode(a)        // it cannot fail: a body that is no JSON is a text
	kept := keptAnswer{text.Bytes(), func() {}}
	if unread := v.exchange.proxy.o.Unread; unread != nil {
		kept.leave = unread.Count(text.Cap(), cut)
	}
	return kept
}

// crowded reports whether so much is kept for clients that each answer waits for the one before.
func (v batch) crowded() bool {
	unread := v.exchange.proxy.o.Unread
	return unread != nil && unread.IsCrowded()
}

// batchFields are the header fields of a batch that are not those of its requests; some of
// them (true) each request may have, beside those that are part of the API's questions.
var batchFields = map[string]bool{
	"Accept": true, "Cache-Control": true, "If-None-Match": true, "Pragma": true, "Prefer": true, "X-Request-Id": true,
	"Accept-Encoding": false, "Content-Encoding": false, "Content-Length": false, "Content-Type": false, "Expect": false, "Range": false,
}

// request is one request, with the batch's credential and what proxies have said of it.
func (v batch) request(one *batchRequest) (*http.Request, error) {
	if !strings.HasPrefix(one.Path, "/") || strings.HasPrefix(one.Path, "/-/") || strings.ContainsAny(one.Path, " #") {
		return nil, fmt.Errorf("proxy: %w: path: want a path of the API, with its query", understudy.ErrInvalid)
	}
	u, err := url.ParseRequestURI(one.Path)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w: path: it cannot be read", understudy.ErrInvalid)
	}
	r := v.exchange.came.Clone(v.exchange.came.Context())
	r.Method, r.URL, r.RequestURI, r.Body, r.ContentLength, r.TransferEncoding = http.MethodGet, u, one.Path, http.NoBody, 0, nil
	maps.DeleteFunc(r.Header, func(name string, _ []string) bool { _, ok := batchFields[name]; return ok })
	for name, value := range one.Headers {
		name = http.CanonicalHeaderKey(name)
		if _, asked := v.exchange.proxy.o.Source.Spec.Headers.Key[name]; !asked && !batchFields[name] {
			return nil, fmt.Errorf("proxy: %w: headers: a request of a batch may not have %.40q", understudy.ErrInvalid, name)
		}
		r.Header[name] = []string{value}
	}
	v.exchange.proxy.carriers.CopyParams(r, v.exchange.came)
	return r, nil
}

// alone has a request answered as if it had come alone.
func (v batch) alone(r *http.Request, err error) (out batchResponse) {
	w := &batchWriter{header: http.Header{}, all: v.bytes}
	defer func() {
		if recover() != nil { // it was logged; the answer had begun
			out = batchResponse{Status: http.StatusInternalServerError,
				Headers: map[string]string{jsonhttp.ErrorHeader: "internal server error"}}
		}
	}()
	refuse := func(err error) {
		one := exchange{proxy: v.exchange.proxy, w: w, r: v.exchange.r, came: v.exchange.came, caller: v.exchange.caller}
		one.fail(err)
	}
	if err != nil {
		refuse(err)
	} else {
		v.exchange.proxy.o.Current().ServeHTTP(w, r)
	}
	if w.long {
		w = &batchWriter{header: http.Header{}, all: &atomic.Int64{}}
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

// longError is the error of an answer that is too long for a batch.
type longError struct{}

func (longError) Error() string {
	return fmt.Sprintf("the answer is longer than %d bytes, or those of the batch together than %d; ask for it alone",
		maxBatchReply, maxBatchBytes)
}

// batchWriter keeps one answer.
type batchWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
	long   bool
	all    *atomic.Int64 // bytes of all bodies of the batch
}

func (w *batchWriter) Header() http.Header { return w.header }

func (w *batchWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
}

// Write keeps what there is room for.
func (w *batchWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.long = w.long || w.body.Len()+len(p) > maxBatchReply || w.all.Add(int64(len(p))) > maxBatchBytes
	if w.long {
		w.body = bytes.Buffer{}
		return 0, errors.New("proxy: the answer is too long for a batch")
	}
	return w.body.Write(p)
}
