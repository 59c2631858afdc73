// Home: how complete kinds are, and their syncs.

package viewer_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/request"
)

func TestSyncs(t *testing.T) {
	h := viewertest.Open(t, func(o *page.Options) {
		o.Snapshot = func(ctx context.Context, source string) page.Snapshot {
			s := viewertest.Snapshot(ctx, source)
			s.Kinds["calls"] = page.StoredKind{Records: 5000, Complete: true, CaughtUp: viewertest.Noon.Add(-10 * time.Second)}
			s.Kinds["messages"] = page.StoredKind{Records: 1204, Why: "backfill runs", Running: true, Done: 1204, Total: 10000, ETA: 4 * time.Minute}
			s.Kinds["conferences"] = page.StoredKind{Records: 12, Why: "not swept for 26 h"}
			s.Kinds["queues"] = page.StoredKind{Records: 3, Running: true, Done: 3}
			s.Webhooks = []request.Webhook{{Name: "crm", State: "paused", Why: "The receiver answers 500.", Failing: viewertest.Noon.Add(-time.Hour),
				Behind: 1300},
				{Name: "audit", State: "ok"}, {Name: "late", State: "failing"}}
			return s
		}
	})
	page := h.Page("/", viewertest.Berlin)
	viewertest.CheckGolden(t, "home-syncs", page)
	viewertest.CheckHTML(t, "syncs", page)
	for _, want := range []string{"backfill runs", `value="1204" max="10000"`, "about 4 min left", "not swept for 26 h", "complete",
		"1,300 waiting", "The receiver answers 500."} {
		if !strings.Contains(page, want) {
			t.Errorf("home lacks %q", want)
		}
	}
	if support := h.Page("/", viewertest.Support); strings.Contains(support, "crm") || !strings.Contains(support, "backfill runs") {
		t.Error("who does not see everything reads of webhooks, or not of syncs")
	}
	data := h.Page("/index.json", viewertest.All)
	for _, want := range []string{`"why":"backfill runs","sync":{"done":1204,"total":10000,"eta":240}`, `"complete":true`, `"sync":null`} {
		if !strings.Contains(data, want) {
			t.Errorf("index.json lacks %s", want)
		}
	}
}

// TestIndexDataSaysWhyAKindIsNotComplete: also of kinds that were never synced.
func TestIndexDataSaysWhyAKindIsNotComplete(t *testing.T) {
	var home struct {
		Sources []struct {
			Kinds []struct {
				Name, Why string
				Complete  bool
			}
		}
	}
	viewertest.Must(t, json.Unmarshal([]byte(viewertest.Open(t).Page("/index.json", viewertest.All)), &home))
	for _, k := range home.Sources[0].Kinds {
		if k.Complete == (k.Why != "") {
			t.Errorf("%s: complete is %v, why %q", k.Name, k.Complete, k.Why)
		}
	}
}
