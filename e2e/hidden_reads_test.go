// Hidden reads: what the store reads for a hidden value and for one that never was.

package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"testing"

	"understudy/internal/sample"
)

// reads are the store's counters of what was read.
func (f *few) reads() (n struct{ Rows, Index, Blocks int64 }) {
	f.Helper()
	var stats struct {
		Store struct {
			Read *struct{ Rows, Index, Blocks int64 }
		}
	}
	stats.Store.Read = &n
	if err := json.Unmarshal(get(f.T, f.all, f.web+"/-/stats").body, &stats); err != nil {
		f.Fatal(err)
	}
	return n
}

// reading is what one request has the store read.
func (f *few) reading(a asking) string {
	f.Helper()
	before := f.reads()
	status, _, _ := f.say(f.few, a)
	after := f.reads()
	return fmt.Sprintf("%d: %d rows, %d of indexes, %d blocks", status, after.Rows-before.Rows, after.Index-before.Index, after.Blocks-before.Blocks)
}

func TestHiddenValuesReadAsMuchAsUnknownOnes(t *testing.T) {
	t.Parallel()
	f := newFew(t)
	never := []string{never("CA"), never("RE"), never(f.hidden["messages"]), neverNumber}
	hidden := f.about(f.hidden["calls"], f.hidden["recordings"], f.hidden["messages"], f.number, nil)
	unknown := f.about(never[0], never[1], never[2], never[3], nil)
	ask := func(query string) asking {
		return asking{web: true, method: "GET", path: "/-/search?q=" + url.QueryEscape(query)}
	}
	pairs := [][2]asking{}
	run := sample.OneIn(t, 12)
	for i := range hidden {
		fresh := !slices.Contains(hidden[i].headers, "no-cache")
		if hidden[i].method == "GET" && fresh && run() {
			pairs = append(pairs, [2]asking{hidden[i], unknown[i]})
		}
	}
	for _, pair := range [][2]string{
		{"kind:calls direction:outbound-api", "kind:calls direction:outbound-xyz"}, {"kind:messages status:failed", "kind:messages status:canceled"},
		{"kind:messages status:failed,sent", "kind:messages status:canceled,scheduled"}, {"kind:calls to:" + f.number, "kind:calls to:" + neverNumber},
		{"number:" + f.number, "number:" + neverNumber}, {"kind:calls id:" + f.hidden["calls"], "kind:calls id:" + never[0]},
		{"kind:calls id:" + f.hidden["calls"] + " status:busy", "kind:calls id:" + never[0] + " status:busy"},
		{"kind:messages sid:" + f.hidden["messages"], "kind:messages sid:" + never[2]},
	} {
		pairs = append(pairs, [2]asking{ask(pair[0]), ask(pair[1])})
		for _, more := range []string{"&facets=true", "&sort=rank", "&sort=oldest"} {
			one, other := ask(pair[0]), ask(pair[1])
			one.path += more
			other.path += more
			pairs = append(pairs, [2]asking{one, other})
		}
	}
	for _, pair := range pairs {
		one, other := f.reading(pair[0]), f.reading(pair[1])
		for tries := 0; tries < 4 && one != other; tries++ { // something else may read meanwhile
			one, other = f.reading(pair[0]), f.reading(pair[1])
		}
		if one != other {
			t.Errorf("%s\nhidden %s\nnever  %s", pair[0].path, one, other)
		}
	}
}
