// Play: players of recordings and links to images, and the tokens in their addresses.

package page_test

import (
	"regexp"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
)

// A recording has a player that loads nothing, and files to keep; an image is
// behind a link; who may not have them reads "hidden".
func TestPlaying(t *testing.T) {
	h := viewertest.Open(t, func(o *page.Options) { o.Media = viewertest.NoMedia{} })
	recording := h.FirstID("/twilio/recordings", `RE[0-9a-f]{32}`)
	page := h.Page("/twilio/recordings/"+recording, viewertest.All)
	checktest.True(t,
		regexp.MustCompile(`<audio controls preload="none" src="/-/media/[\w-]+" aria-label="Recording RE`).MatchString(page),
		"no player, or no files: regexp.MustCompile(`<audio controls preload=\"none\" src=\"/-/m… is false")
	checktest.Equal(t, strings.Count(page, "<a download"), 2,
		`no player, or no files: strings.Count(page, "<a download")`)
	checktest.Contains(t, page, ">MP3</a>", "no player, or no files: page")
	if strings.Contains(page, "<img src=\"/-/media") || strings.Contains(h.Page("/twilio/recordings", viewertest.All), "/-/media/") {
		t.Error("a page fetches contents, or a list is heavy with their addresses")
	}
	under := h.Page("/twilio/calls/"+h.FirstID("/twilio/recordings", `CA[0-9a-f]{32}`), viewertest.All)
	if !strings.Contains(under, `<td class="content"`) || !strings.Contains(under, `<th scope="col" class="content">Audio</th>`) {
		t.Error("the recordings of a call have no column of players, or one without a head")
	}
	message := h.MessageWithMedia()
	page = h.Page("/twilio/messages/"+message, viewertest.All)
	if !regexp.MustCompile(`<a (class="button" href="/-/media/[\w-]+" data-image="Medium ME|download href="/-/media/)`).MatchString(page) {
		t.Error("no way to the media of a message")
	}
	masked := viewertest.Support
	page = h.Page("/twilio/recordings/"+recording, masked)
	if strings.Contains(page, "/-/media/") || !strings.Contains(page, `<h2>Audio</h2><span class="hidden"`) {
		t.Error("support may hear what it may not")
	}
	if page = h.Page("/twilio/messages/"+message, masked); strings.Contains(page, "/-/media/") {
		t.Error("support may see what it may not")
	}
}

// No token but one that was made here opens anything, and none makes the viewer
// fall over.
func FuzzMediaToken(f *testing.F) {
	seals, err := page.NewSeals()
	if err != nil {
		f.Fatal(err)
	}
	key := understudy.Key{Source: "twilio", URI: viewertest.Recording}
	in := func(name string) (s page.Session) { copy(s.Raw[:], name); return s }
	good := seals.Seal(in("session"), "caller", key, 100)
	f.Add(good, "session", "caller", int64(100))
	f.Add(good, "session", "caller", int64(101))
	f.Add(good, "session", "caller", int64(102))
	f.Add(good[:len(good)-1], "session", "caller", int64(100))
	f.Add("", "", "", int64(0))
	f.Add("AAAAAAAAAAAAAAAAAAAAAA", "session", "caller", int64(-1))
	f.Fuzz(func(t *testing.T, token, name, caller string, now int64) {
		own := in(name)
		got, bucket, ok := seals.Open(token, own, caller, now)
		if right := token == good && own == in("session") && caller == "caller" && (now == 100 || now == 101); ok != right || ok &&
			(got != key || bucket != 100) {
			t.Fatalf("%q for %q, %q at %d: %v %v", token, name, caller, now, got, ok)
		}
		made := seals.Seal(own, caller, understudy.Key{Source: "s", URI: token}, now)
		if back, _, ok := seals.Open(made, own, caller, now); len(made) <= page.MaxToken && (!ok || back.Source != "s" || back.URI != token) {
			t.Fatalf("%q does not come back: %+v %v", token, back, ok)
		}
		own.Raw[15]++
		if _, _, ok := seals.Open(made, own, caller, now); ok {
			t.Fatal("another session opens it")
		}
	})
}

// Two processes with one secret open each other's tokens, those with another secret do not.
func TestDerivedSealsOpenEachOthersTokens(t *testing.T) {
	derive := func(secret string) *page.Seals {
		s, err := page.DeriveSeals([]byte(secret))
		checktest.MustNoError(t, err, "DeriveSeals")
		return s
	}
	key := understudy.Key{Source: "twilio", URI: viewertest.Recording}
	token := derive("one").Seal(page.Session{}, "caller", key, 100)
	got, _, ok := derive("one").Open(token, page.Session{}, "caller", 100)
	checktest.True(t, ok, "a token of another process with the same secret is refused")
	checktest.Equal(t, got, key, "key")
	_, _, ok = derive("two").Open(token, page.Session{}, "caller", 100)
	checktest.True(t, !ok, "a token made with another secret is accepted")
}
