// The header of a skeleton.

package codec

import (
	"testing"
	"time"

	"understudy/internal/checktest"
)

// What upstream's header said is kept beside the content type, and what older
// stores hold there is read as before.
func TestSkeletonHeader(t *testing.T) {
	for text, want := range map[string]Skeleton{
		"":                                {},
		"text/plain":                      {ContentType: "text/plain"},
		"text/plain\x00windows-1252":      {ContentType: "text/plain", Charset: "windows-1252"},
		"text/plain\x00windows-1252\x009": {ContentType: "text/plain", Charset: "windows-1252", InitialAge: 9 * time.Second},
		"a/b\x00\x0086400":                {ContentType: "a/b", InitialAge: 24 * time.Hour},
		"a/b\x00\x000\x00Etag=%22v1%22":   {ContentType: "a/b", Kept: "Etag=%22v1%22"},
	} {
		var got Skeleton
		got.setHeader(text)
		checktest.Equal(t, got.ContentType, want.ContentType, "got.ContentType; text %q", text)
		checktest.Equal(t, got.Charset, want.Charset, "got.Charset; text %q", text)
		checktest.Equal(t, got.InitialAge, want.InitialAge, "got.InitialAge; text %q", text)
		checktest.Equal(t, got.Kept, want.Kept, "got.Kept; text %q", text)
		if back := want.header(); back != text {
			t.Errorf("%+v is %q, want %q", want, back, text)
		}
	}
	var odd Skeleton
	if odd.setHeader("a\x00b\x00x"); odd.InitialAge != 0 {
		t.Errorf("damaged: %v", odd.InitialAge)
	}
}
