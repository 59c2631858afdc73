// Tests of media: lists, the way to the content, and the pictures themselves.
package slowapi

import (
	"bytes"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/world"
)

func TestMediaAgreeWithMessages(t *testing.T) {
	r := start(t, Options{Records: 300})
	all, sorts := 0, map[any]int{}
	for _, message := range r.walk(root+"/Messages.json?PageSize=1000", nil) {
		list := r.page(message["subresource_uris"].(record)["media"].(string)).records
		if n, _ := strconv.Atoi(message["num_media"].(string)); n != len(list) {
			t.Fatalf("num_media %d, and %d media", n, len(list))
		}
		for _, one := range list {
			all++
			sorts[one["content_type"]]++
			if one["parent_sid"] != message["sid"] || one["date_created"] != message["date_created"] {
				t.Errorf("%v of %v", one, message["sid"])
			}
			if again := r.one(one["uri"].(string)); again["sid"] != one["sid"] || len(again) != len(one) {
				t.Errorf("%v, and by itself %v", one, again)
			}
		}
	}
	if all != 30 || len(sorts) != 2 {
		t.Errorf("%d media: %v", all, sorts)
	}
	if n := len(r.page(root + "/Messages.json?PageSize=3").records); n != 3 {
		t.Fatal(n)
	}
	before := r.walk(root+"/Messages.json?PageSize=1000", nil)
	r.control("/-/advance", `{"messages":40}`, 200)
	new := r.walk(root+"/Messages.json?PageSize=1000", nil)[:40]
	carried := 0
	for _, message := range new {
		if message["num_media"] == "1" {
			carried++
			if list := r.page(message["subresource_uris"].(record)["media"].(string)).records; len(list) != 1 {
				t.Errorf("%d media of a new message", len(list))
			}
		}
	}
	if carried != 2 || len(before) != 600 {
		t.Errorf("%d of 40 new messages carry media", carried)
	}
}

// written makes a message with media and gives the paths of these.
func (r running) written(n int) (message string, media []string) {
	r.Helper()
	form := url.Values{"To": {"+15005550006"}, "Body": {"see"}}
	for i := range n {
		form.Add("MediaUrl", "https://example.com/"+strconv.Itoa(i))
	}
	made := r.write("POST", root+"/Messages.json", form, 201)
	message = root + "/Messages/" + made["sid"].(string)
	for _, one := range r.page(message + "/Media.json").records {
		media = append(media, strings.TrimSuffix(one["uri"].(string), ".json"))
	}
	if made["num_media"] != strconv.Itoa(n) || len(media) != n {
		r.Fatalf("%v media, %d listed, want %d", made["num_media"], len(media), n)
	}
	return message, media
}

func TestMediaWrites(t *testing.T) {
	r := start(t, Options{Records: 60})
	message, media := r.written(10)
	r.write("POST", root+"/Messages.json", url.Values{"To": {"+15005550006"}, "MediaUrl": slices.Repeat([]string{"x"}, 11)}, 400)
	first := r.page(message + "/Media.json?PageSize=4")
	if second := r.page(*first.Next); len(second.records) != 4 || !slices.Equal(sids(r.page(*second.Previous).records), sids(first.records)) {
		t.Error("pages of media do not point at each other")
	}
	r.write("DELETE", media[2]+".json", nil, 204)
	r.write("DELETE", media[2]+".json", nil, 404)
	if got := r.one(message + ".json"); got["num_media"] != "9" {
		t.Errorf("%v media after one was deleted", got["num_media"])
	}
	if got := r.page(message + "/Media.json").records; len(got) != 9 {
		t.Errorf("%d listed after one was deleted", len(got))
	}
	other, _ := r.written(1)
	for _, gone := range []string{media[2], strings.Replace(media[3], message, other, 1)} {
		for _, ending := range []string{"", ".json"} {
			if resp, _ := r.fetch("GET", gone+ending); resp.StatusCode != 404 {
				t.Errorf("GET %s: %d", gone+ending, resp.StatusCode)
			}
		}
	}
	r.write("DELETE", message+".json", nil, 204)
	if resp, _ := r.fetch("GET", media[4]); resp.StatusCode != 404 {
		t.Errorf("of a deleted message: %d", resp.StatusCode)
	}
}

func TestPictures(t *testing.T) {
	r := start(t, Options{Records: 400})
	seen := map[string]bool{}
	_, paths := r.written(8)
	for _, path := range paths {
		sort := r.one(path + ".json")["content_type"].(string)
		resp, body := r.fetch("GET", path)
		to := resp.Header.Get("Location")
		if resp.StatusCode != 307 || len(body) != 0 || !strings.HasPrefix(to, r.web.URL+"/-/cdn/") {
			t.Fatalf("GET %s: %d to %s", path, resp.StatusCode, to)
		}
		if head, _ := r.fetch("HEAD", path); head.StatusCode != 307 {
			t.Errorf("HEAD %s: %d", path, head.StatusCode)
		}
		resp, err := http.Get(to) // without credentials
		if err != nil {
			t.Fatal(err)
		}
		var whole bytes.Buffer
		_, _ = whole.ReadFrom(resp.Body)
		resp.Body.Close()
		drawn, format, err := image.Decode(bytes.NewReader(whole.Bytes()))
		if err != nil || "image/"+format != sort || resp.Header.Get("Content-Type") != sort || resp.StatusCode != 200 {
			t.Fatalf("%s is %s: %v", sort, format, err)
		}
		if size := drawn.Bounds().Size(); size.X < 200 || size.X > 600 || size.Y < 150 || size.Y > 500 {
			t.Errorf("it measures %v", size)
		}
		seen[whole.String()] = true
		part, body := r.fetch("GET", strings.TrimPrefix(to, r.web.URL), "Range", "bytes=10-19", "If-Range", resp.Header.Get("ETag"))
		if part.StatusCode != 206 || !bytes.Equal(body, whole.Bytes()[10:20]) {
			t.Errorf("a part: %d", part.StatusCode)
		}
		again, body := r.fetch("GET", strings.TrimPrefix(to, r.web.URL))
		if again.StatusCode != 200 || !bytes.Equal(body, whole.Bytes()) {
			t.Error("the same medium is not the same bytes")
		}
	}
	if len(seen) != len(paths) {
		t.Errorf("%d different pictures of %d", len(seen), len(paths))
	}
	if resp, err := http.Get(r.web.URL + paths[0]); err != nil || resp.StatusCode != 401 {
		t.Errorf("without credentials: %v", resp.StatusCode)
	}
}

func TestSignedAddressesEnd(t *testing.T) {
	var later atomic.Int64
	r := start(t, Options{Records: 60, Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	_, paths := r.written(2)
	resp, _ := r.fetch("GET", paths[0])
	to := strings.TrimPrefix(resp.Header.Get("Location"), r.web.URL)
	one, other := paths[0][len(paths[0])-34:], paths[1][len(paths[1])-34:]
	for target, want := range map[string]int{
		to:                                     200,
		strings.Replace(to, one, other, 1):     403,
		strings.Replace(to, "=", "=9", 1):      403,
		to + "0":                               403,
		strings.Split(to, "?")[0]:              403,
		strings.Replace(to, "/0/", "/1/", 1):   403,
		strings.Replace(to, "/0/", "/0//", 1):  403,
		"/-/cdn/":                              403,
		"/-/cdn/0/" + one + "?Signature=&Expi": 403,
	} {
		if resp, _ := r.fetch("GET", target); resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", target, resp.StatusCode, want)
		}
	}
	if resp, _ := r.fetch("POST", to); resp.StatusCode != 405 {
		t.Errorf("POST: %d", resp.StatusCode)
	}
	later.Store(int64(cdnValid + 2*time.Second))
	if resp, _ := r.fetch("GET", to); resp.StatusCode != 403 {
		t.Errorf("after its end: %d", resp.StatusCode)
	}
	later.Store(0)
	r.write("DELETE", paths[0]+".json", nil, 204)
	if resp, _ := r.fetch("GET", to); resp.StatusCode != 404 {
		t.Errorf("of a deleted medium: %d", resp.StatusCode)
	}
}

func TestMediaMayComeLate(t *testing.T) {
	r := start(t, Options{Records: 60, Quirks: []string{world.MediaLate}})
	_, paths := r.written(2)
	for _, path := range paths {
		for i, want := range []int{404, 307, 307} {
			if resp, _ := r.fetch("GET", path); resp.StatusCode != want {
				t.Errorf("request %d for %s: %d, want %d", i+1, path, resp.StatusCode, want)
			}
		}
	}
}

// FuzzCDN asks for any address: only those signed here open.
func FuzzCDN(f *testing.F) {
	s, err := New(Options{Records: 60})
	if err != nil {
		f.Fatal(err)
	}
	defer s.Close()
	media := s.twilio.world.Below[0][kinds.Media]
	good := s.twilio.cdn.path(0, string(s.twilio.world.AppendSID(nil, media, kinds.Places*kinds.MediaPlace(1, 2))), time.Now())
	if got := ask(s, good); got.Code != 200 {
		f.Fatalf("a good address: %d", got.Code)
	}
	for _, seed := range []string{good, "/-/cdn/0/ME?Expires=1&Signature=x", "/-/cdn/-1/x", "/-/cdn//", "/-/cdn/0/%00?Expires=%zz",
		"/-/cdn/9999999999999999999/ME"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		at, err := url.ParseRequestURI(target)
		if err != nil || !strings.HasPrefix(at.Path, cdnPath) {
			return
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.URL, r.RequestURI = at, target
		got := httptest.NewRecorder()
		s.ServeHTTP(got, r)
		q := at.Query()
		signed := q.Get("Signature") == s.twilio.cdn.sign(at.Path, q.Get("Expires"))
		if got.Code != 403 && !signed || got.Code != 403 && got.Code != 200 && got.Code != 404 {
			t.Fatalf("%d", got.Code)
		}
	})
}
