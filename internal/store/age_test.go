package store

import (
	"testing"
	"time"
)

// What upstream's header said is kept beside the content type, and what older
// stores hold there is read as before.
func TestSkeletonHeader(t *testing.T) {
	for text, want := range map[string]skeleton{
		"":                                {},
		"text/plain":                      {contentType: "text/plain"},
		"text/plain\x00windows-1252":      {contentType: "text/plain", charset: "windows-1252"},
		"text/plain\x00windows-1252\x009": {contentType: "text/plain", charset: "windows-1252", initialAge: 9 * time.Second},
		"a/b\x00\x0086400":                {contentType: "a/b", initialAge: 24 * time.Hour},
	} {
		var got skeleton
		if got.setHeader(text); got.contentType != want.contentType || got.charset != want.charset || got.initialAge != want.initialAge {
			t.Errorf("%q is %+v", text, got)
		}
		if back := want.header(); back != text {
			t.Errorf("%+v is %q, want %q", want, back, text)
		}
	}
	var odd skeleton
	if odd.setHeader("a\x00b\x00x"); odd.initialAge != 0 {
		t.Errorf("damaged: %v", odd.initialAge)
	}
}
