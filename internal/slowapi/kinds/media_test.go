// Tests of media: lists and writes.
package kinds_test

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

func TestMediaAgreeWithMessages(t *testing.T) {
	t.Parallel()
	r := slowapitest.Start(t, slowapi.Options{Records: 300})
	all, sorts := 0, map[any]int{}
	for _, message := range r.Walk(root+"/Messages.json?PageSize=1000", nil) {
		list := r.Page(message["subresource_uris"].(record)["media"].(string)).Records
		if n, _ := strconv.Atoi(message["num_media"].(string)); n != len(list) {
			t.Fatalf("num_media %d, and %d media", n, len(list))
		}
		for _, one := range list {
			all++
			sorts[one["content_type"]]++
			if one["parent_sid"] != message["sid"] || one["date_created"] != message["date_created"] {
				t.Errorf("%v of %v", one, message["sid"])
			}
			if again := r.One(one["uri"].(string)); again["sid"] != one["sid"] || len(again) != len(one) {
				t.Errorf("%v, and by itself %v", one, again)
			}
		}
	}
	if all != 30 || len(sorts) != 2 {
		t.Errorf("%d media: %v", all, sorts)
	}
	if n := len(r.Page(root + "/Messages.json?PageSize=3").Records); n != 3 {
		t.Fatal(n)
	}
	before := r.Walk(root+"/Messages.json?PageSize=1000", nil)
	r.Control("/-/advance", `{"messages":40}`, 200)
	new := r.Walk(root+"/Messages.json?PageSize=1000", nil)[:40]
	carried := 0
	for _, message := range new {
		if message["num_media"] == "1" {
			carried++
			if list := r.Page(message["subresource_uris"].(record)["media"].(string)).Records; len(list) != 1 {
				t.Errorf("%d media of a new message", len(list))
			}
		}
	}
	if carried != 2 || len(before) != 600 {
		t.Errorf("%d of 40 new messages carry media", carried)
	}
}

func TestMediaWrites(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 60})
	message, media := r.WriteMessage(10)
	r.Write("POST", root+"/Messages.json", url.Values{"To": {"+15005550006"}, "MediaUrl": slices.Repeat([]string{"x"}, 11)}, 400)
	first := r.Page(message + "/Media.json?PageSize=4")
	second := r.Page(*first.Next)
	if len(second.Records) != 4 || !slices.Equal(r.Page(*second.Previous).Records.SIDs(), first.Records.SIDs()) {
		t.Error("pages of media do not point at each other")
	}
	r.Write("DELETE", media[2]+".json", nil, 204)
	r.Write("DELETE", media[2]+".json", nil, 404)
	if got := r.One(message + ".json"); got["num_media"] != "9" {
		t.Errorf("%v media after one was deleted", got["num_media"])
	}
	if got := r.Page(message + "/Media.json").Records; len(got) != 9 {
		t.Errorf("%d listed after one was deleted", len(got))
	}
	other, _ := r.WriteMessage(1)
	for _, gone := range []string{media[2], strings.Replace(media[3], message, other, 1)} {
		for _, ending := range []string{"", ".json"} {
			if resp, _ := r.Fetch("GET", gone+ending); resp.StatusCode != 404 {
				t.Errorf("GET %s: %d", gone+ending, resp.StatusCode)
			}
		}
	}
	r.Write("DELETE", message+".json", nil, 204)
	if resp, _ := r.Fetch("GET", media[4]); resp.StatusCode != 404 {
		t.Errorf("of a deleted message: %d", resp.StatusCode)
	}
}
