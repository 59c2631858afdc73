// Quota: the weight of a body is reported before the body is in memory, and exactly at
// the end.

package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/kit/retry"
	"understudy/request"
)

// TestWeigh: told weights never lag behind what is held by more than the light
// mebibyte, end at the truth, and are not told of light bodies.
func TestWeigh(t *testing.T) {
	type answer struct {
		coding string
		wire   []byte
		length bool
	}
	var current atomic.Pointer[answer] // who refuses leaves while upstream still writes
	client := served(t, func(w http.ResponseWriter, r *http.Request) {
		next := current.Load()
		w.Header().Set("Content-Type", "application/json")
		if next.coding != "" {
			w.Header().Set("Content-Encoding", next.coding)
		}
		if next.length {
			w.Header().Set("Content-Length", strconv.Itoa(len(next.wire)))
		} else {
			w.(http.Flusher).Flush()
		}
		_, _ = w.Write(next.wire)
	})
	light1, heavy1 := callsPage(50), callsPage(1000) // 100 KB and 2 MB
	for _, c := range []struct {
		name   string
		body   []byte
		coding string
		pack   func(io.Writer) io.WriteCloser
		length bool
		most   int // how often it may be told
	}{
		{"light", light1, "", nil, true, 0},
		{"light, length unknown", light1, "", nil, false, 0},
		{"light, coded", light1, "gzip", packers[0].writer, true, 0},
		{"heavy", heavy1, "", nil, true, 1},
		{"heavy, length unknown", heavy1, "", nil, false, 5},
		{"heavy, coded", heavy1, "gzip", packers[0].writer, true, 8},
		{"heavy, zstd", heavy1, "zstd", packers[2].writer, true, 8},
		{"heavy, coded, length unknown", heavy1, "gzip", packers[0].writer, false, 5},
	} {
		next := &answer{coding: c.coding, wire: c.body, length: c.length}
		if c.pack != nil {
			next.wire = packed(c.pack, c.body)
		}
		current.Store(next)
		var told []int64
		f := request.Fetch{Target: target(t, client, callsPath), Reserve: func(_ context.Context, n int64) error {
			told = append(told, n)
			return nil
		}}
		p, err := client.Fetch(t.Context(), f)
		if err != nil || string(p.Body) != string(c.body) {
			t.Errorf("%s: %v, or another body", c.name, err)
			continue
		}
		t.Log(c.name, told)
		if len(told) > c.most || c.most > 0 && (len(told) == 0 || told[len(told)-1] != int64(len(c.body))) {
			t.Errorf("%s: told %v of %d bytes", c.name, told, len(c.body))
		}
		tooHeavy, times := errors.New("too heavy"), 0
		f.Reserve = func(_ context.Context, n int64) error {
			if times++; times > 1 {
				t.Errorf("%s: told after it was refused", c.name)
			}
			return tooHeavy
		}
		if c.most == 0 {
			continue
		}
		if _, err := client.Fetch(t.Context(), f); !errors.Is(err, tooHeavy) || errors.Is(err, understudy.ErrUnavailable) {
			t.Errorf("%s, refused: %v", c.name, err)
		}
	}
	if health := client.Health(); health.State != "ok" {
		t.Errorf("health after what was too heavy: %+v", health)
	}
	if _, err := get(t, client, callsPath); err != nil {
		t.Errorf("a slot is lost: %v", err)
	}
}

// TestWeighMayTakeItsTime: Weigh may wait; that does not count as silence of upstream.
func TestWeighMayTakeItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		body := string(callsPage(1000))
		client := scripted(t, &script{do: func(int, *http.Request) (*http.Response, error) { return reply(200, body), nil }})
		begin := time.Now()
		p, err := client.Fetch(t.Context(), request.Fetch{Target: target(t, client, callsPath),
			Reserve: func(ctx context.Context, n int64) error {
				if n != int64(len(body)) {
					return fmt.Errorf("told %d of %d bytes", n, len(body))
				}
				return retry.Wait(ctx, 15*time.Second)
			}})
		checktest.MustNoError(t, err, "")
		checktest.MustEqual(t, len(p.Rows), 1000, "len(p.Rows)")
		checktest.Equal(t, time.Since(begin), 15*time.Second, "time.Since(begin)")
	})
}

// TestParents: rows say under which record they lie.
func TestParents(t *testing.T) {
	s := builtInSpec(t, "twilio")
	for _, c := range []struct {
		kind, body string
		want       []string
	}{
		{"participants", `{"participants":[{"conference_sid":"CF1","call_sid":"CA1"},{"conference_sid":"CF1","call_sid":"CA2"},` +
			`{"call_sid":"CA3","conference_sid":"CF2"}]}`, []string{"CF1", "CF1", "CF2"}},
		{"media", `{"media_list":[{"sid":"ME1","parent_sid":null},{"sid":"ME2","parent_sid":"MM1"},{"sid":"ME3"},{"sid":"ME6",` +
			`"parent_sid":"MM1"},{"sid":"ME4","parent_sid":"M\u004d1"},{"sid":"ME5","parent_sid":"M\u004d1"}]}`,
			[]string{"", "MM1", "", "MM1", "MM1", "MM1"}},
		{"calls", `{"calls":[{"sid":"CA1","parent_call_sid":"CA2"}]}`, []string{""}},
	} {
		k := s.Kind(c.kind)
		f := readList(newPlan(s, k), k.Lists[0], &s.Paging, []byte(c.body), document1(t, []byte(c.body)), 50)
		if f.why != "" || len(f.rows) != len(c.want) {
			t.Errorf("%s: %d rows, %s", c.kind, len(f.rows), f.why)
			continue
		}
		for i, row := range f.rows {
			if row.Parent != c.want[i] {
				t.Errorf("%s: row %d lies under %q, want %q", c.kind, i, row.Parent, c.want[i])
			}
		}
	}
}
