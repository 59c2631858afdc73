// Markers: every route asked as support; nothing hidden is in any byte sent.

package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"understudy/request"
	"understudy/spec"
)

// planted answers every ask with a body full of markers for its kind.
func planted(t *testing.T, s *spec.Spec, status int) func(context.Context, request.Request) (*request.Response, error) {
	return func(_ context.Context, ask request.Request) (*request.Response, error) {
		k := ask.Target.Kind
		record := map[string]any{"unnamed": "HIDDEN", "unnamed_object": map[string]any{"sid": "HIDDEN", "list": []any{"HIDDEN"}}}
		for _, f := range k.Fields {
			switch {
			case strings.Contains(f.Name, ".") || f.Type == spec.TypeMap:
			case f.Class == spec.ClassPhone:
				record[f.Name] = "+155500HIDDEN"
			case f.Type == spec.TypeMedia, f.Class == spec.ClassBody || f.Class == spec.ClassSecret:
				record[f.Name] = "HIDDEN"
			default:
				record[f.Name] = "shown"
			}
		}
		var doc any = record
		if ask.Target.List != nil {
			doc = map[string]any{ask.Target.List.Key: []any{record, record}, "unnamed": "HIDDEN", "page": 0}
		}
		if status >= 400 {
			doc = map[string]any{"code": 20001, "message": "HIDDEN", "details": map[string]any{"x": "HIDDEN"}}
		}
		body, err := json.Marshal(doc)
		if err != nil {
			t.Error(err)
		}
		return &request.Response{Page: page(k.Name, ask.Target.List != nil, status, string(body)), Outcome: request.Warm}, nil
	}
}

// exampleID is an id of a kind, as its prefixes and its number of parts say.
func exampleID(k *spec.Kind) string {
	parts := make([]string, max(1, len(k.ID)))
	for i := range parts {
		parts[i] = fmt.Sprintf("%032d", i+2)
		if len(k.Prefixes) > 0 {
			parts[i] = k.Prefixes[0] + parts[i]
		}
	}
	return k.JoinID(parts)
}

// plantedMedia are contents that no masked role may have.
type plantedMedia struct{}

func (plantedMedia) Open(context.Context, request.MediaRequest) (*request.MediaResponse, error) {
	return &request.MediaResponse{ReadCloser: io.NopCloser(strings.NewReader("HIDDEN")), Status: 200, Size: 6, ContentType: "audio/HIDDEN",
		ETag: `"HIDDEN"`}, nil
}

func TestNoHiddenMarkerOnAnyRoute(t *testing.T) {
	b := newBed(t)
	b.o.Media = plantedMedia{}
	value := func(*spec.Filter) string { return "HIDDENVALUE" }
	id := func(kind string) string { return exampleID(b.o.Source.Spec.Kind(kind)) }
	examples := AllTargets(b.o.Source, id, value)
	shown := 0
	for _, status := range []int{200, 404, 400, 500} {
		b.script.page = planted(t, b.o.Source.Spec, status)
		for _, target := range examples {
			for _, method := range []string{"GET", "HEAD", "POST", "DELETE", "TRACE"} {
				for _, coding := range []string{"gzip", "identity"} {
					w := b.ask(method, target, masked, "Accept-Encoding", coding)
					body := w.Body.String()
					if w.Header().Get("Content-Encoding") == "gzip" && body != "" {
						body = unzip(t, []byte(body))
					}
					if sent := fmt.Sprint(w.Header()) + body; strings.Contains(sent, "HIDDEN") {
						t.Errorf("%s %s: %s", method, target, sent)
					}
					if strings.Contains(body, "shown") {
						shown++
					}
				}
			}
		}
	}
	b.script.page = planted(t, b.o.Source.Spec, 200)
	body := b.batch(t, masked, examples[:min(len(examples), maxBatch)]...).Body.String()
	if strings.Contains(body, "HIDDEN") || !strings.Contains(body, "shown") {
		t.Errorf("a batch shows %s", body)
	}
	if shown < 2*len(b.Routes())-2 {
		t.Errorf("only %d answers showed anything; the test could not fail", shown)
	}
	if strings.Contains(b.text(t), "HIDDEN") {
		t.Error("the access log holds a hidden value")
	}
}

func TestExamplesReachEveryRoute(t *testing.T) {
	b := newBed(t)
	id := func(kind string) string { return exampleID(b.o.Source.Spec.Kind(kind)) }
	reached := map[string]bool{"GET /-/health": true, "GET /-/ready": true, "POST " + batchPath: true}
	told := "GET " + b.o.Source.Spec.Limits.Path
	for _, target := range AllTargets(b.o.Source, id, func(*spec.Filter) string { return "x" }) {
		path, query, _ := strings.Cut(target, "?")
		at, err := b.o.Source.Spec.Resolve("twilio", path, query)
		switch {
		case "GET "+path == told:
			reached[told] = true
		case err != nil || at.Kind == nil:
		case at.List != nil:
			reached["GET "+at.List.Path] = true
		default:
			if at.Media != nil {
				reached["GET "+at.Media.Path] = true
			} else {
				reached["GET "+at.Instance.Path] = true
			}
			if len(at.Kind.Prefixes) > 0 && !at.Kind.HasIDPrefix(at.ID) {
				t.Errorf("%s names %q as one of %s", target, at.ID, at.Kind.Name)
			}
		}
		if strings.ContainsAny(path, "{}") {
			t.Errorf("%s has a variable left", target)
		}
	}
	for _, route := range b.Routes() {
		if !reached[route] {
			t.Errorf("no example reaches %s", route)
		}
	}
	if !slices.Contains(b.Routes(), "GET /-/health") || len(b.Routes()) < 5 {
		t.Errorf("routes %v", b.Routes())
	}
}
