// What random APIs tell beside their lists: limits, header fields, and how errors look.

package infer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/infer"
	"understudy/internal/query"
	"understudy/mirror/compose"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// told is what an API tells beside its lists.
type told struct {
	limit   int    // the status by which it tells of its limit; 0 = it has none
	rate    string // what the names of the fields of its limit begin with; "" = none has them
	seconds bool   // a window's end is told in seconds from now
	retry   bool   // a refusal has Retry-After
	words   string // a text in a refusal, where nothing else tells it
	request string // the field with the id of a request
	media   string // of its answers
	account bool   // a field says whose data are asked for
	errors  string // the form of errors
	object  bool   // lists say what they are
	good    string // the member by which an answer says that it is none; "" = errors have their own status

	window  int // requests that it takes in windowTime; 0: its limit is not enforced
	left    int
	ends    time.Time
	refused int // requests that were refused
	early   int // requests that came before the time that a refusal told
}

// The window of a limit.
const (
	windowRequests = 3
	windowTime     = 20 * time.Second
)

func (a *drawnAPI) drawTold() {
	t := &a.told
	t.limit = []int{0, 429, 403}[a.IntN(3)]
	if t.limit != 0 {
		t.rate = a.one("", "X-RateLimit-", "X-Rate-Limit-", "RateLimit-", "Shop-RateLimit-")
		t.seconds = t.rate == "RateLimit-" || a.IntN(2) == 0
		switch a.IntN(3) {
		case 0:
			t.retry = true
		case 1:
			if t.limit == 403 && t.rate == "" {
				t.words = a.one("Secondary rate limit", "Too many requests")
			}
		}
		t.retry = t.retry || t.rate == "" && t.words == ""
	}
	t.request = a.one("X-Request-Id", "Shop-Request-Id", "Request-Id", "X-Trace-Id")
	t.media = a.one("application/json", "application/json", "application/vnd.shop.v2+json")
	t.account = a.IntN(2) == 0
	t.object = a.IntN(2) == 0
	t.errors = a.one("flat", "nested", "list", "")
	if a.key != "" && a.IntN(3) == 0 {
		t.good = a.one("ok", "success", "status", "error")
	}
}

func (a *drawnAPI) goodSchema() object {
	switch a.told.good {
	case "status":
		return object{"type": "string", "enum": []string{"success", "error"}}
	case "error":
		return object{"type": "string", "nullable": true}
	}
	return object{"type": "boolean"}
}

func (a *drawnAPI) goodValue(good bool) any {
	switch {
	case a.told.good == "status" && good:
		return "success"
	case a.told.good == "status":
		return "error"
	case a.told.good == "error" && good:
		return nil
	case a.told.good == "error":
		return "it_failed"
	}
	return good
}

// fail answers with an error.
func (a *drawnAPI) fail(w http.ResponseWriter, status int) {
	body := a.failure("It failed", status)
	if a.told.good != "" {
		body[a.told.good], status = a.goodValue(false), http.StatusOK
	}
	a.answer(w, status, body)
}

func (a *drawnAPI) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", a.told.media)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// failure is the body of an error.
func (a *drawnAPI) failure(message string, status int) object {
	codes := map[int]string{401: "unauthorized", 403: "permission_denied", 404: "not_found", 429: "rate_limited", 500: "internal_error"}
	code := codes[status]
	if code == "" {
		code = "invalid_request"
	}
	switch a.told.errors {
	case "nested":
		return object{"error": object{"message": message, "code": code, "object": "error"}}
	case "list":
		return object{"errors": []object{{"detail": message, "status": strconv.Itoa(status)}}}
	}
	return object{"message": message, "status": status}
}

// failureSchema is the schema of an error.
func (a *drawnAPI) failureSchema() object {
	text, number := object{"type": "string"}, object{"type": "integer"}
	switch a.told.errors {
	case "nested":
		code := object{"type": "string", "enum": []string{"unauthorized", "permission_denied", "not_found", "rate_limited", "internal_error",
			"invalid_request"}}
		always := object{"type": "string", "enum": []string{"error"}}
		return object{"type": "object", "properties": object{"error": object{"type": "object",
			"properties": object{"message": text, "code": code, "object": always}}}}
	case "list":
		return object{"type": "object", "properties": object{"errors": object{"type": "array", "items": object{"type": "object",
			"properties": object{"detail": text, "status": text}}}}}
	}
	return object{"type": "object", "properties": object{"message": text, "status": number}}
}

// refuses reports whether the limit is reached, after it has answered so.
func (a *drawnAPI) refuses(w http.ResponseWriter) bool {
	t := &a.told
	if t.limit == 0 || t.window == 0 {
		return false
	}
	now := time.Now()
	if !now.Before(t.ends) {
		t.left, t.ends = t.window, now.Add(windowTime)
	}
	over := t.left <= 0
	if !over {
		t.left--
	}
	if t.rate != "" {
		reset := int64(t.ends.Sub(now) / time.Second)
		if !t.seconds {
			reset = t.ends.Unix()
		}
		w.Header()[http.CanonicalHeaderKey(t.rate+"Limit")] = []string{strconv.Itoa(t.window)}
		w.Header()[http.CanonicalHeaderKey(t.rate+"Remaining")] = []string{strconv.Itoa(max(0, t.left))}
		w.Header()[http.CanonicalHeaderKey(t.rate+"Reset")] = []string{strconv.FormatInt(reset, 10)}
	}
	if !over {
		return false
	}
	if t.refused++; t.left < 0 {
		t.early++
	}
	t.left = -1
	if t.retry {
		w.Header().Set("Retry-After", strconv.Itoa(int(t.ends.Sub(now)/time.Second)))
	}
	a.answer(w, t.limit, a.failure(strings.TrimSpace("Wait. "+t.words), t.limit))
	return true
}

// toldHeaders are the header fields of good answers in the document.
func (a *drawnAPI) toldHeaders(swagger bool) object {
	t := &a.told
	h := object{t.request: a.header("string", "", swagger), "Access-Control-Allow-Origin": a.header("string", "", swagger)}
	if t.rate != "" {
		h[t.rate+"Limit"], h[t.rate+"Remaining"] = a.header("integer", "", swagger), a.header("integer", "", swagger)
		text := "When it ends, in UTC epoch seconds."
		if t.seconds {
			text = "How many seconds remain: the number of seconds until it ends."
		}
		h[t.rate+"Reset"] = a.header("integer", text, swagger)
	}
	return h
}

func (a *drawnAPI) header(typ, text string, swagger bool) object {
	if swagger {
		return object{"type": typ, "description": text}
	}
	return object{"schema": object{"type": typ}, "description": text}
}

// refusals adds the answers with another status.
func (a *drawnAPI) refusals(responses object, swagger bool) object {
	t := &a.told
	content := func(text string, example any) object {
		out := object{"description": text}
		if swagger {
			out["schema"] = a.failureSchema()
			if example != nil {
				out["examples"] = object{t.media: example}
			}
			return out
		}
		media := object{"schema": a.failureSchema()}
		if example != nil {
			media["example"] = example
		}
		out["content"] = object{t.media: media}
		return out
	}
	responses["404"] = content("There is none.", a.failure("It failed", 404))
	if t.limit == 0 {
		return responses
	}
	refusal := content(map[int]string{403: "Forbidden.", 429: "Slow down."}[t.limit], nil)
	if t.words != "" {
		refusal = content("Forbidden.", a.failure("Wait. "+t.words, 403))
	}
	h := object{}
	if t.retry {
		h["Retry-After"] = a.header("integer", "", swagger)
	}
	if t.rate != "" {
		h[t.rate+"Remaining"] = a.header("integer", "", swagger)
	}
	refusal["headers"] = h
	responses[strconv.Itoa(t.limit)] = refusal
	return responses
}

// RoundTrip answers without a network, so that time may be a bubble's.
func (a *drawnAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	a.ServeHTTP(rec, r)
	return rec.Result(), nil
}

// checkTold compares what a spec says of limits, header fields and errors with the API.
func (a *drawnAPI) checkTold(t *testing.T, draft *infer.Draft) {
	sp, err := upstream.ReadSpec("draft.yaml", draft.YAML)
	if err != nil {
		t.Fatal(err)
	}
	h, told := sp.Headers, &a.told
	var back, key []string
	if told.request != "X-Request-Id" {
		back = []string{told.request}
	}
	if name, ok := strings.CutPrefix(a.total, "header:"); ok {
		back = append(back, name)
	}
	if told.account {
		key = []string{"X-Account"}
	}
	slices.Sort(h.Back)
	slices.Sort(back)
	media := ""
	if told.media != "application/json" {
		media, key = told.media, append([]string{"Accept"}, key...)
	}
	checktest.True(t, slices.Equal(h.Write, []string{"Idempotency-Key"}), "h.Write is %v", h.Write)
	checktest.Equal(t, h.Send["X-Api-Version"], a.version, `h.Send["X-Api-Version"]`)
	checktest.True(t, slices.Equal(h.Back, back), "h.Back is %v, want %v", h.Back, back)
	checktest.True(t, slices.Equal(slices.Sorted(maps.Keys(h.Key)), key),
		"slices.Sorted(maps.Keys(h.Key)) is %v, want %v", slices.Sorted(maps.Keys(h.Key)), key)
	checktest.Equal(t, h.Send["Accept"], media, `h.Send["Accept"]`)
	if told.rate != "" {
		want := http.CanonicalHeaderKey(told.rate + "Remaining")
		if sp.Limits.Remaining != want || (sp.Limits.ResetAs == spec.ResetSeconds) != told.seconds {
			t.Errorf("limits: %+v, want %s, seconds %v", sp.Limits, want, told.seconds)
		}
	}
	a.checkErrors(t, sp)
	if known := sp.Paging.Template != ""; known {
		a.checkComposed(t, sp)
	} else if a.style == "cursor" || a.style == "none" {
		t.Errorf("it is not known how a list is written")
	}
	if told.limit != 0 {
		synctest.Test(t, func(t *testing.T) { a.walkLimited(t, sp) })
	}
}

// checkSeen compares what a spec that was drawn from answers says with the API.
func (a *drawnAPI) checkSeen(t *testing.T, sp *spec.Spec) {
	var back []string
	if a.told.request != "X-Request-Id" {
		back = []string{http.CanonicalHeaderKey(a.told.request)}
	}
	if name, ok := strings.CutPrefix(a.total, "header:"); ok {
		back = append(back, name)
	}
	slices.Sort(sp.Headers.Back)
	slices.Sort(back)
	if !slices.Equal(sp.Headers.Back, back) || !maps.Equal(sp.Headers.Send, a.send()) {
		t.Errorf("headers: %+v, want back %v and send %v", sp.Headers, back, a.send())
	}
	want := http.CanonicalHeaderKey(a.told.rate + "Remaining")
	if a.told.rate != "" && (sp.Limits.Remaining != want || (sp.Limits.ResetAs == spec.ResetSeconds) != a.told.seconds) {
		t.Errorf("limits: %+v, want %s, seconds %v", sp.Limits, want, a.told.seconds)
	}
	if a.told.good == "" && a.told.errors != "nested" && sp.Errors.Messages["not_found"] != "It failed" {
		t.Errorf("errors: %+v", sp.Errors)
	}
	if sp.Paging.Template != "" {
		a.checkComposed(t, sp)
	}
}

// checkErrors fetches a record that does not exist, and compares the form of our errors with
// that of the API.
func (a *drawnAPI) checkErrors(t *testing.T, sp *spec.Spec) {
	path := strings.ReplaceAll(sp.Kinds[0].Instances[0].Path, "{"+sp.Kinds[0].Instances[0].ID[0]+"}", "nowhere")
	target, err := sp.Resolve("x", path, "")
	if err != nil {
		t.Fatal(err)
	}
	page, err := a.client(t, sp).Fetch(context.Background(), request.Fetch{Target: target})
	checktest.MustNoError(t, err, "no record; page %+v", page)
	checktest.True(t, !(a.told.good != "" && page.NotStored == ""),
		`no record: a.told.good != "" && page.NotStored == ""; a.told.good is %q`, a.told.good)
	checktest.True(t, !(a.told.good == "" && page.Status != http.StatusNotFound),
		`no record: a.told.good == "" && page.Status != http.StatusNotFound; a.told.good is %q`, a.told.good)
	text := strings.NewReplacer("{message}", `"It failed"`, "{status}", "404", "{code}", sp.Errors.Code("not_found")).
		Replace(sp.Errors.Template)
	var got, want any
	theirs, _ := json.Marshal(a.failure("It failed", 404))
	_, _ = json.Unmarshal([]byte(text), &got), json.Unmarshal(theirs, &want)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("an error is %s, want %s", text, theirs)
	}
	if sp.Errors.Messages["not_found"] != "It failed" {
		t.Errorf("messages: %v", sp.Errors.Messages)
	}
}

// records are the rows of a list, in its order.
type records []*understudy.Record

func (r records) Seek(_ context.Context, _ query.RecordQuery, yield func(query.Hit) bool) error {
	for i, rec := range r {
		if !yield(query.Hit{Record: rec, Order: query.OrderKey(len(r) - i)}) {
			break
		}
	}
	return nil
}

func (records) FindPlace(context.Context, string, string, string) (query.OrderKey, error) {
	return 0, understudy.ErrNotFound
}

// checkComposed compares the list's first page, made from records, with that of the API.
// Lists by number are made when they have one page.
func (a *drawnAPI) checkComposed(t *testing.T, sp *spec.Spec) {
	target, err := sp.Resolve("x", sp.Kinds[0].Lists[0].Path, "")
	if err != nil {
		t.Fatal(err)
	}
	c := a.client(t, sp)
	var all records
	var first *understudy.Page
	for at := target; ; {
		page, err := c.Fetch(context.Background(), request.Fetch{Target: at})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = page
		}
		for _, row := range page.Rows {
			all = append(all, &understudy.Record{ID: row.ID, Body: page.Body[row.Start:row.End]})
		}
		if page.Next.IsZero() {
			break
		}
		if at, err = sp.ResolveLink("x", page.Next.URI); err != nil {
			t.Fatal(err)
		}
	}
	list, err := compose.New(&spec.Source{Name: "x", Spec: sp, User: "me"}, target, compose.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := list.Fill(context.Background(), all); err != nil {
		t.Fatal(err)
	}
	page, err := list.BuildPage(time.Now())
	switch {
	case errors.Is(err, understudy.ErrInvalid) && a.style != "cursor" && a.style != "none" && len(all) > 0:
		return // it has several pages
	case err != nil:
		t.Fatal(err)
	}
	var got, want any
	_, _ = json.Unmarshal(page.Body, &got), json.Unmarshal(first.Body, &want)
	if fmt.Sprint(got) != fmt.Sprint(want) || page.ContentType != first.ContentType {
		t.Errorf("made from records: %s %.300s\nwant %s %.300s", page.ContentType, page.Body, first.ContentType, first.Body)
	}
	composed[a.style]++
}

// composed counts the lists that were compared, by style.
var composed = map[string]int{}

// walkLimited walks the list while the API enforces its limit. Nothing is asked before the
// time that was told, and where the API says what remains it never has to refuse.
func (a *drawnAPI) walkLimited(t *testing.T, sp *spec.Spec) {
	c, err := upstream.New(upstream.Options{Source: &spec.Source{Name: "x", Spec: sp, User: "me"}, Base: a.server,
		Secret: understudy.NewSecret("secret1"), Rate: 100_000, Transport: a})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a.told.window, a.told.ends = windowRequests, time.Time{}
	defer func() { a.told.window = 0 }()
	target, err := sp.Resolve("x", sp.Kinds[0].Lists[0].Path, "")
	rows, waits := 0, 0
	for pages := 0; pages < 200; pages++ {
		if err != nil {
			t.Fatal(err)
		}
		page, err := c.Fetch(context.Background(), request.Fetch{Target: target})
		var up *understudy.UpstreamError
		if errors.As(err, &up) && (up.Why == understudy.FailLimited || up.Why == understudy.FailDown) { // it holds back
			waits++
			time.Sleep(max(up.RetryAfter, time.Second))
			continue
		}
		if err != nil || page.NotStored != "" {
			t.Fatalf("after %d rows and %d waits: %v", rows, waits, err)
		}
		rows += len(page.Rows)
		if page.Next.IsZero() {
			break
		}
		target, err = sp.ResolveLink("x", page.Next.URI)
		if err != nil {
			t.Fatal(err)
		}
	}
	checktest.Equal(t, rows, len(a.rows),
		"rows after %d waits and %d refusals", waits, a.told.refused)
	checktest.True(t, a.told.early <= 0,
		"%d of %d refused requests came before the time that the API had told", a.told.early, a.told.refused)
	checktest.True(t, !(a.told.rate != "" && a.told.refused > 0),
		"%d requests were refused, although the API tells a rate: %q", a.told.refused, a.told.rate)
}
