// Hidden tokens: page tokens are made of ids; one that names a hidden record
// ends a walk like one that names a record that never was.

package hidden

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// walked are hidden records that a token may name, and records that may be
// found under which there are lists.
type walked struct {
	call, recording, message, medium, participant string
	openCall, openMessage, conference             string
	now                                           string
}

// rows reads a list as role all.
func (f *few) rows(path, key string) (rows []map[string]any) {
	f.Helper()
	var page map[string]json.RawMessage
	if err := json.Unmarshal(rig.Get(f.T, f.all, f.dropIn+rig.Base+path).Body, &page); err != nil {
		f.Fatal(err)
	}
	if err := json.Unmarshal(page[key], &rows); err != nil {
		f.Fatal(err)
	}
	return rows
}

// walks finds what tokens are tried with.
func (f *few) walks() *walked {
	f.Helper()
	w := &walked{call: f.hidden["calls"], recording: f.hidden["recordings"], message: f.hidden["messages"], now: url.QueryEscape(time.Now().UTC().Format(time.RFC3339))}
	hidden := map[string]bool{}
	for _, id := range f.ids["calls"] {
		hidden[id] = true
	}
	for _, r := range f.rows("/Recordings.json?PageSize=1000", "recordings") {
		if call, _ := r["call_sid"].(string); call != "" && !hidden[call] {
			w.openCall = call
		}
	}
	for _, r := range f.rows("/Messages.json?PageSize=1000", "messages") {
		id := r["sid"].(string)
		switch {
		case r["num_media"] == "0":
		case r["status"] == "delivered":
			w.openMessage = id
		case w.medium == "":
			if all := f.rows("/Messages/"+id+"/Media.json", "media_list"); len(all) > 0 {
				w.medium = all[0]["sid"].(string)
			}
		}
	}
	for _, r := range f.rows("/Conferences.json?PageSize=1000", "conferences") {
		w.conference = r["sid"].(string)
		for _, p := range f.rows("/Conferences/"+w.conference+"/Participants.json", "participants") {
			if call := p["call_sid"].(string); hidden[call] {
				w.participant = w.conference + "~" + call
			}
		}
		if w.participant != "" {
			break
		}
	}
	if w.participant == "" { // none is in a conference now
		w.participant = w.conference + "~" + w.call
	}
	checktest.MustTrue(f, w.openCall != "", "the world has too little to walk through: w.openCall is empty")
	checktest.MustTrue(f, w.openMessage != "", "the world has too little to walk through: w.openMessage is empty")
	checktest.MustTrue(f, w.medium != "", "the world has too little to walk through: w.medium is empty")
	checktest.MustTrue(f, w.conference != "", "the world has too little to walk through: w.conference is empty")
	return w
}

// never are tokens' records of which none ever was, under the same lists.
func (w *walked) never() *walked {
	none := *w
	none.call, none.recording, none.medium = never("CA"), never("RE"), never("ME")
	none.message, none.participant = never(w.message), w.conference+"~"+never("CA")
	return &none
}

// names are the records that tokens name.
func (w *walked) names() []string {
	return []string{w.participant, w.call, w.recording, w.message, w.medium}
}

// asks are walks that go on at the records, both ways.
func (w *walked) asks() (all []asking) {
	for _, list := range []struct{ path, kind, id string }{
		{"/Calls.json", "calls", w.call},
		{"/Messages.json", "messages", w.message},
		{"/Recordings.json", "recordings", w.recording},
		{"/Calls/" + w.openCall + "/Recordings.json", "", w.recording},
		{"/Messages/" + w.openMessage + "/Media.json", "", w.medium},
		{"/Conferences/" + w.conference + "/Participants.json", "", w.participant},
	} {
		heads := []string{"PA", "PB"}
		if strings.Contains(list.id, "~") {
			heads = append(heads, "after~", "before~")
		}
		for _, head := range heads {
			at := "PageSize=2&Page=1&PageToken=" + url.QueryEscape(head+list.id)
			for _, more := range []string{"", "&understudy.as_of=" + w.now, "&understudy.order=asc", "&understudy.order=asc&understudy.since=1", "&understudy.since=1", "&understudy.q=0", "&PageToken=x"} {
				all = append(all, asking{method: "GET", path: rig.Base + list.path + "?" + at + more})
			}
			all = append(all, asking{method: "HEAD", path: rig.Base + list.path + "?" + at},
				asking{method: "GET", path: rig.Base + list.path + "?" + at, headers: []string{"Cache-Control", "only-if-cached"}},
				asking{method: "GET", path: rig.Base + list.path + "?" + at, headers: []string{"Cache-Control", "no-cache"}})
			if list.kind == "" {
				continue
			}
			for _, form := range []string{"", ".json", ".csv", ".jsonl"} {
				for _, more := range []string{"", "&understudy.as_of=" + w.now} {
					all = append(all, asking{web: true, method: "GET", path: "/twilio/" + list.kind + form + "?" + at + more})
				}
			}
		}
	}
	for _, under := range []string{"recordings%s?CallSid=" + w.openCall + "&PageSize=2&Page=1&PageToken=PA" + w.recording, "media%s?MessageSid=" + w.openMessage + "&PageSize=2&Page=1&PageToken=PA" + w.medium} {
		for _, form := range []string{"", ".json", ".csv"} {
			all = append(all, asking{web: true, method: "GET", path: "/twilio/" + strings.Replace(under, "%s", form, 1)})
		}
	}
	return all
}

// goesOn walks through what may be found, both ways: tokens that were given are
// good.
func (f *few) goesOn(w *walked) {
	f.Helper()
	for _, path := range []string{"/Calls.json?PageSize=3", "/Messages.json?PageSize=3", "/Recordings.json?PageSize=2", "/Calls/" + w.openCall + "/Recordings.json?PageSize=1", "/Messages/" + w.openMessage + "/Media.json?PageSize=1"} {
		first, at, pages := "", rig.Base+path, 0
		for ; at != "" && pages < 4; pages++ {
			var page struct {
				Next     string `json:"next_page_uri"`
				Previous string `json:"previous_page_uri"`
			}
			r := rig.Get(f.T, f.few, f.dropIn+at)
			if err := json.Unmarshal(r.Body, &page); err != nil || r.Status != http.StatusOK {
				f.Fatalf("%s: %d %s", at, r.Status, r.Body)
			}
			if back := page.Previous; back != "" {
				if r := rig.Get(f.T, f.few, f.dropIn+back); r.Status != http.StatusOK {
					f.Errorf("back to %s: %d %s", back, r.Status, r.Body)
				}
			}
			if first == "" {
				first = string(r.Body)
			}
			at = page.Next
		}
		if strings.Contains(path, "=3") && pages < 4 {
			f.Errorf("%s has %d pages: %s", path, pages, first)
		}
	}
}
